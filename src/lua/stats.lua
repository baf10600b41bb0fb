-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common batch app
-- flags: no-writes
--
-- stats - one look at everything below the prefix, at a bounded cost.
--
-- KEYS: prefix.
-- Answer: a flat list of names and values:
--
--	now_us		Redis' clock
--	due_total	entries in the shadow
--	due_now		those whose time has come
--	oldest_due	due ms of the first, -1 without any
--	waiting		jobs that were delivered and wait for their finish
--	late		those whose deadline has passed
--	next_deadline	ms of the first, -1 without any
--	records		records of pending entries and jobs
--	batches		open batches
--	looked		those looked into for what follows, 10,000 at most
--	open_batches	on their way to Kafka
--	open_entries	events in them
--	parked_batches	waiting for a topic
--	parked_entries	events in them
--	dead		dead letters
--	heard, found, inferred
--			watched keys claimed so far, by how sure their expiry was
--	scan_begun	ms when the newest pass through the keyspace began, -1 without any
--	scan_at		of its last step that is remembered
--	scan_done	ms when one was last done, -1 if none was
--	scan_looked	keys looked at in it
--	scan_keys	keys that there were when it began
--	seen		watched keys claimed a moment ago
--	slots		a list of [slot, epoch, lease left ms, instance]
--	open		a list of [slot, batches, entries]
--	parked		a list of [topic, batches, entries, first retry in ms]

-- The row of `key` in `rows`, whose first column it is; new ones are zero.
local function row_of(rows, key, columns)
	local row = rows[key]
	if not row then
		row = { key }
		for i = 2, columns do
			row[i] = 0
		end
		rows[key] = row
		rows[#rows + 1] = row
	end
	return row
end

-- A list of rows with numbers as decimals, in the order of their first column.
local function table_of(rows, before)
	local list = {}
	for i = 1, #rows do
		list[i] = rows[i]
	end
	table.sort(list, before)
	for _, row in ipairs(list) do
		for i = 2, #row do
			row[i] = type(row[i]) == 'number' and int(row[i]) or row[i]
		end
	end
	return list
end

local function by_number(a, b)
	return tonumber(a[1]) < tonumber(b[1])
end

local function by_name(a, b)
	return a[1] < b[1]
end

local function stats_slots(prefix, ms)
	local rows = {}
	local slots = redis.call('HSCAN', prefix .. ':slots', 0, 'COUNT', LOOK)[2]
	for i = 1, math.min(#slots, 2 * LOOK), 2 do
		local epoch, ends, instance = string.match(slots[i + 1], '^(%d+):(%d+):(.*)$')
		if epoch then
			rows[#rows + 1] = { slots[i], epoch, math.max(tonumber(ends) - ms, 0), instance }
		end
	end
	return table_of(rows, by_number)
end

local function stats_batches(prefix, ms)
	local open, parked, sum = {}, {}, { 0, 0, 0, 0 }
	local found = redis.call('HSCAN', prefix .. ':open', 0, 'COUNT', LOOK)[2]
	local looked = math.min(#found / 2, LOOK)
	for i = 1, 2 * looked, 2 do
		local entries = redis.call('HLEN', prefix .. ':b:' .. found[i])
		local _, _, retry, topic = open_parse(found[i + 1])
		local row, at
		if topic == '' then
			row, at = row_of(open, string.match(found[i], '^%d*'), 3), 1
		else
			row, at = row_of(parked, topic, 4), 3
			local left = math.max(tonumber(retry) - ms, 0)
			row[4] = row[2] == 0 and left or math.min(row[4], left)
		end
		row[2], row[3] = row[2] + 1, row[3] + entries
		sum[at], sum[at + 1] = sum[at] + 1, sum[at + 1] + entries
	end
	return looked, sum, table_of(open, by_number), table_of(parked, by_name)
end

local function lapse_stats(keys, argv)
	local wrong = bad_plain_call(keys, argv, 0)
	if wrong then
		return wrong
	end
	local prefix = keys[1]
	redis.call('SELECT', NSDB)
	local us = now_us()
	local ms = math.floor(us / 1000)
	local first = redis.call('ZRANGE', prefix .. ':due', 0, 0, 'WITHSCORES')
	local deadline = redis.call('ZRANGE', prefix .. ':wait', 0, 0, 'WITHSCORES')
	local looked, sum, open, parked = stats_batches(prefix, ms)
	local sure = redis.call('HMGET', prefix .. ':sure', 'heard', 'found', 'inferred')
	local scan = redis.call('HMGET', prefix .. ':scan', 'begun', 'at', 'done', 'looked', 'keys')
	return {
		'now_us', int(us),
		'due_total', int(redis.call('ZCARD', prefix .. ':due')),
		'due_now', int(redis.call('ZCOUNT', prefix .. ':due', '-inf', ms)),
		'oldest_due', first[2] and int(first[2]) or '-1',
		'waiting', int(redis.call('ZCARD', prefix .. ':wait')),
		'late', int(redis.call('ZCOUNT', prefix .. ':wait', '-inf', ms)),
		'next_deadline', deadline[2] and int(deadline[2]) or '-1',
		'records', int(redis.call('HLEN', prefix .. ':rec')),
		'batches', int(redis.call('HLEN', prefix .. ':open')),
		'looked', int(looked),
		'open_batches', int(sum[1]),
		'open_entries', int(sum[2]),
		'parked_batches', int(sum[3]),
		'parked_entries', int(sum[4]),
		'dead', int(redis.call('ZCARD', prefix .. ':dead')),
		'seen', int(redis.call('ZCARD', prefix .. ':seen')),
		'heard', sure[1] or '0',
		'found', sure[2] or '0',
		'inferred', sure[3] or '0',
		'scan_begun', scan[1] or '-1',
		'scan_at', scan[2] or '-1',
		'scan_done', scan[3] or '-1',
		'scan_looked', scan[4] or '0',
		'scan_keys', scan[5] or '0',
		'slots', stats_slots(prefix, ms),
		'open', open,
		'parked', parked,
	}
end
