-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job take
-- flags: allow-oom
--
-- purge - one bounded step of taking back all that is meant for a topic: what
-- is pending, and jobs wherever they are.
--
-- KEYS: prefix.  ARGV: topic, cursor (`0` at first), count.
-- Answer: next cursor (`0`: this was the end), how many were looked at, how many
-- were cancelled.

-- The topic in a record, without reading all of it; nil without one.
local function topic_of(record)
	local at = 12
	while at + 2 <= #record do
		local tag = string.sub(record, at, at)
		if tag == 'p' then
			return nil
		end
		local n = struct.unpack('>I2', record, at + 1)
		if tag == 't' then
			return string.sub(record, at + 3, at + 2 + n)
		end
		at = at + 3 + n
	end
end

local function lapse_purge(keys, argv)
	local wrong = bad_call(keys, argv, 1, 3)
	if wrong then
		return wrong
	end
	local count = decimal(argv[3], 1000)
	if #argv > 3 or not string.find(argv[2], '^%d+$') or not count or count == 0 then
		return bad('topic, cursor and a count of 1 to 1000 are needed')
	end
	redis.call('SELECT', NSDB)
	local page = redis.call('HSCAN', keys[1] .. ':rec', argv[2], 'COUNT', count)
	local done = 0
	for i = 1, #page[2], 2 do
		local member = page[2][i]
		if string.sub(member, 1, 2) == 's:' and topic_of(page[2][i + 1]) == argv[1] then
			local answer = take_back(keys[1], string.sub(member, 3))
			done = done + (answer[1] == 'cancelled' and 1 or 0)
		end
	end
	return { page[1], int(#page[2] / 2), int(done) }
end
