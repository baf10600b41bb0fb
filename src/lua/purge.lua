-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job take
-- flags: allow-oom
--
-- purge - one bounded step of taking back all scheduled events for a topic: what
-- is pending, what is parked, and jobs wherever they are.
--
-- KEYS: prefix.
-- ARGV: topic, cursor (`0` at first), count of entries to look at.
-- Answer: next cursor (`0`: this was the end), how many were looked at, how many
-- were taken back, how many are on their way to Kafka.
--
-- First through `rec`, by a cursor of HSCAN; then through the open batches in the
-- order of their names, `b` and the name of the latest being the cursor.

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

local function purge_records(prefix, topic, cursor, count)
	local page = redis.call('HSCAN', prefix .. ':rec', cursor, 'COUNT', count)
	local ids, done = {}, 0
	for i = 1, #page[2], 2 do
		local member = page[2][i]
		if string.sub(member, 1, 2) == 's:' and topic_of(page[2][i + 1]) == topic then
			ids[#ids + 1] = string.sub(member, 3)
		end
	end
	for _, answer in ipairs(take_back(prefix, ids)) do
		done = done + (answer[1] == 'cancelled' and 1 or 0)
	end
	return { page[1] == '0' and 'b' or page[1], int(#page[2] / 2), int(done), '0' }
end

-- The open batch behind `name` and its value in `open`; nil at the end.
local function next_batch(open, name)
	local at
	for i = 1, #open, 2 do
		if open[i] > name and (not at or open[i] < open[at]) then
			at = i
		end
	end
	return at and open[at], at and open[at + 1]
end

-- Looked at, taken back, on their way.
local function purge_batch(prefix, topic, name, open)
	local parked, mine = string.find(open, '^%d+ %d+ %d+ '), {}
	local entries = redis.call('HGETALL', prefix .. ':b:' .. name)
	for i = 1, #entries, 2 do
		local _, _, record = envelope_open(entries[i + 1])
		if string.find(entries[i], '^[sp]:') and topic_of(record or '') == topic then
			mine[#mine + 1] = entries[i]
		end
	end
	if not parked then
		return #entries / 2, 0, #mine
	end
	for _, member in ipairs(mine) do
		leave_batch(prefix, name, member)
	end
	return #entries / 2, #mine, 0
end

local function purge_batches(prefix, topic, name, count)
	local open = redis.call('HGETALL', prefix .. ':open')
	local looked, done, flying = 0, 0, 0
	while looked < count do
		local behind, value = next_batch(open, name)
		if not behind then
			return { '0', int(looked), int(done), int(flying) }
		end
		local l, d, f = purge_batch(prefix, topic, behind, value)
		looked, done, flying, name = looked + l, done + d, flying + f, behind
	end
	return { 'b' .. name, int(looked), int(done), int(flying) }
end

local function lapse_purge(keys, argv)
	local wrong = bad_call(keys, argv, 1, 3)
	if wrong then
		return wrong
	end
	local topic, cursor, count = argv[1], argv[2], decimal(argv[3], 1000)
	local behind = string.match(cursor, '^b(.*)$')
	if #argv > 3 or not (behind or string.find(cursor, '^%d+$')) or not count or count == 0 then
		return bad('topic, cursor and a count of 1 to 1000 are needed')
	end
	redis.call('SELECT', NSDB)
	if behind then
		return purge_batches(keys[1], topic, behind, count)
	end
	return purge_records(keys[1], topic, cursor, count)
end
