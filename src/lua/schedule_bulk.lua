-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms store
--
-- schedule_bulk - schedule up to 1,000 events, each of which is answered for
-- itself: one that is refused does not keep the others from being stored.
--
-- KEYS: prefix.
-- ARGV: of each event the number of its arguments, then those of schedule.
-- Answer: a list of the answers of schedule, errors among them, in order.
--
-- Of two of the same id the later one replaces the earlier.

local MOST_EVENTS = 1000

-- The arguments of each event; nil, error.
local function bulk_split(argv)
	local list, at = {}, 1
	while argv[at] do
		local n = decimal(argv[at], 1000)
		if not n or at + n > #argv then
			return nil, bad('event ' .. #list + 1 .. ' lacks its number of arguments, or some of them')
		end
		if #list == MOST_EVENTS then
			return nil, bad('events must be ' .. MOST_EVENTS .. ' at most in one call')
		end
		list[#list + 1] = { unpack(argv, at + 1, at + n) }
		at = at + 1 + n
	end
	return list
end

local function lapse_schedule_bulk(keys, argv)
	if #keys ~= 1 or not prefix_ok(keys[1]) or #argv == 0 then
		return bad('one prefix such as lapse:{0}, and events, are needed')
	end
	local list, refused = bulk_split(argv)
	if not list then
		return refused
	end
	redis.call('SELECT', NSDB)
	local us, now = clock()
	local events, answers, first = {}, {}, nil
	for i, args in ipairs(list) do
		local e, wrong = nil, bad_call(keys, args, 1, 5)
		if not wrong then
			e, wrong = store_read(keys[1], args, us)
		end
		events[i], answers[i] = e or false, wrong
		if e and (not first or e.due < first.due) then
			first = e
		end
	end
	if first then
		wake(keys[1], first.text, now)
	end
	for i, e in ipairs(events) do
		if e then
			answers[i] = store_event(keys[1], e, us, now)
		end
	end
	return answers
end
