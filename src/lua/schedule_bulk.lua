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
--
-- All that may be asked or written at once is: a call of Redis for each event
-- would cost more than all else.

local MOST_EVENTS = 1000

-- All events that can be read, as if nothing stood in their way: what is to be
-- added to `due` and `rec`, and the answers.  nil, error.
local function bulk_read(argv, us, now)
	local b = { us = us, due = {}, rec = {}, members = {}, who = {}, given = {}, answers = {},
		ended = {} }
	local due, rec, members, who, answers = b.due, b.rec, b.members, b.who, b.answers
	local head, token = store_head(us), '@' .. now .. '.0'
	local at, nargs, events, n, first, text, count = 1, #argv, 0, 0, math.huge, nil, nil
	while at <= nargs do
		if argv[at] ~= text then
			text = argv[at]
			count = decimal(text, 1000)
		end
		if not count or at + count > nargs then
			return nil, bad('event ' .. events + 1 .. ' lacks its number of arguments, or some of them')
		elseif events == MOST_EVENTS then
			return nil, bad('events must be ' .. MOST_EVENTS .. ' at most in one call')
		end
		events = events + 1
		local member, ms, when_, fields, given = store_read(argv, at, count, us)
		if member then
			n = n + 1
			members[n], who[n] = member, events
			due[2 * n - 1], due[2 * n] = when_, member
			rec[2 * n - 1], rec[2 * n] = member, head .. fields .. argv[at + 5]
			if given then
				b.given[n] = given
			end
			answers[events] = { 'scheduled', when_, pct(member) .. token }
			if ms < first then
				first, b.first = ms, when_
			end
		else
			answers[events] = ms
		end
		at = at + 1 + count
	end
	return b
end

-- The lives that stand in `rec`, and those in flight that `nx` asks for.  Whether
-- there is no such, and no event with options.
local function bulk_look(b, prefix)
	local names, found = {}, redis.call('HMGET', prefix .. ':rec', unpack(b.members))
	b.found = found
	for k, given in pairs(b.given) do
		if given.nx and not b.found[k] then
			names[#names + 1] = b.members[k]
		end
	end
	b.flights, b.unsure = in_flights(prefix, names)
	for k = 1, #b.members do
		if found[k] then
			return false
		end
	end
	return next(b.given) == nil
end

-- Why event `k` may not be stored; `due` of the one whose place it would take.
local function bulk_forbidden(b, k, due)
	local given = b.given[k] or {}
	if given.nx and (due or b.found[k] or b.flights[b.members[k]]) then
		return redis.error_reply('LAPSE_EXISTS the id is pending, in flight or waiting')
	elseif given.nx and b.unsure then
		return b.unsure
	end
	return given.if_due_before and store_too_late(given, due, b.us)
end

-- Event `k`, which has options or takes the place of another (`earlier` in this
-- call, or before it): false when it is refused.
local function bulk_place(b, prefix, k, earlier)
	local member, record, answer = b.members[k], b.found[k], b.answers[b.who[k]]
	local due = earlier and b.due[2 * earlier - 1]
		or redis.call('ZSCORE', prefix .. ':due', member)
	local wrong = bulk_forbidden(b, k, due)
	if wrong then
		b.answers[b.who[k]] = wrong
		return false
	elseif not due and not record then
		return true
	end
	local old = record_head(earlier and b.rec[2 * earlier] or record)
	local birth = math.max(b.us, (old or 0) + 1)
	b.rec[2 * k] = store_head(birth) .. string.sub(b.rec[2 * k], 12)
	answer[1], answer[3] = 'replaced', pct(member) .. '@' .. int(birth) .. '.0'
	if not due and is_job(record) then
		b.ended[#b.ended + 1] = member
	end
	return true
end

-- Takes out what may not be stored, and tells what replaces another.  How long
-- the lists are then.
local function bulk_place_all(b, prefix)
	local due, rec, found, given, last, n = b.due, b.rec, b.found, b.given, {}, 0
	for k, member in ipairs(b.members) do
		local earlier = last[member]
		if not (found[k] or given[k] or earlier) or bulk_place(b, prefix, k, earlier) then
			n = n + 1
			if n < k then
				due[2 * n - 1], due[2 * n] = due[2 * k - 1], member
				rec[2 * n - 1], rec[2 * n] = member, rec[2 * k]
			end
			last[member] = n
		end
	end
	if n < #b.members then
		b.first = nil
		for k = 1, n do
			if not b.first or tonumber(due[2 * k - 1]) < tonumber(b.first) then
				b.first = due[2 * k - 1]
			end
		end
	end
	return 2 * n
end

local function lapse_schedule_bulk(keys, argv)
	local prefix = keys[1]
	if #keys ~= 1 or not prefix_ok(prefix) or #argv == 0 then
		return bad('one prefix such as lapse:{0}, and events, are needed')
	end
	redis.call('SELECT', NSDB)
	local us, now = clock()
	local b, refused = bulk_read(argv, us, now)
	if not b then
		return refused
	elseif #b.members == 0 then
		return b.answers
	end
	local clear, n = bulk_look(b, prefix), 2 * #b.members
	if not clear then
		n = bulk_place_all(b, prefix)
	end
	if n > 0 then
		wake(prefix, b.first, now)
		local added = redis.call('ZADD', prefix .. ':due', unpack(b.due, 1, n))
		if clear and 2 * added < n then		-- an id came twice
			bulk_place_all(b, prefix)
		end
		redis.call('HSET', prefix .. ':rec', unpack(b.rec, 1, n))
	end
	for _, member in ipairs(b.ended) do
		job_replaced(prefix, member)
	end
	return b.answers
end
