-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record batch terms job
--
-- walk - one bounded step through a structure, in search of what disagrees
-- with the others; and its repair.  docs/protocol.md, "When structures
-- disagree", has the rules.
--
-- ARGV: part, cursor (`0` at first), count, `1` to repair, then names when only
-- those are to be looked at.
-- Answer: next cursor (`0`: this was the end), how many were looked at, then of
-- each finding its kind, the name and what was done (empty: nothing).
--
-- Adds first and removes last: refused half way it finds the rest again.

local PIECE = 10		-- what HSCAN brings at a time, values included
local MOST_BYTES = 262144	-- of values in a step; then it ends early
local LAST_NUMBERS = 1000	-- of each slot, looked at for a batch
local MOST_LOOKS = 20000	-- into batches in a step, for jobs in flight

local function key_of(w, name)
	return w.prefix .. ':' .. name
end

-- Looking: the kind of a finding, or nil when all is well.  --------------------

local function no_value(w, hash, field)
	return redis.call('HSTRLEN', key_of(w, hash), field) == 0
end

-- A watched key needs no record.
local function look_due(w, member)
	local kind = string.sub(member, 1, 2)
	if kind ~= 'k:' and kind ~= 'e:' and no_value(w, 'rec', member)
		and redis.call('ZSCORE', key_of(w, 'due'), member) then
		return 'due-without-record'
	end
end

local function known_member(member)
	return string.find(member, '^s:.') or string.find(member, '^k:%d+:.')
		or string.find(member, '^e:%d+:%d+:.')
end

-- Why the record can't be put back; nil when it can.
local function unreadable(member, record)
	if not known_member(member) then
		return 'unknown kind of member'
	end
	local fields, wrong = record_fields(record)
	return not fields and wrong or nil
end

-- Whether a batch has that very life and attempt.  When a step has looked into
-- too many batches the rest is taken for granted.
local function flies(w, member, record)
	w.looks = (w.looks or 0) + redis.call('HLEN', key_of(w, 'open'))
	if w.looks > MOST_LOOKS then
		return true
	end
	return job_flight(w.prefix, member, record) ~= nil
end

local function look_rec(w, member)
	if redis.call('ZSCORE', key_of(w, 'due'), member)
		or redis.call('ZSCORE', key_of(w, 'wait'), member) then
		return nil
	end
	local record = redis.call('HGET', key_of(w, 'rec'), member)
	if record and not (is_job(record) and record_head(record) and flies(w, member, record)) then
		return unreadable(member, record) and 'record-unreadable' or 'record-without-due'
	end
end

local function look_wait(w, member)
	if not redis.call('ZSCORE', key_of(w, 'wait'), member) then
		return nil
	elseif redis.call('ZSCORE', key_of(w, 'due'), member) then
		return 'wait-beside-due'
	end
	return no_value(w, 'rec', member) and 'wait-without-record' or nil
end

-- Epoch and highest number of a slot; nil when there is none to be read.
local function numbers(w, slot)
	local held = redis.call('HGET', key_of(w, 'epoch'), slot)
	local epoch, seq = string.match(held or '', '^(%d+):[^:]*:(%d+)$')
	return tonumber(epoch), tonumber(seq)
end

local function look_open(w, name)
	if no_value(w, 'open', name) then
		return nil
	end
	if redis.call('EXISTS', key_of(w, 'b:' .. name)) == 0 then
		return 'open-without-batch'
	end
	local slot, seq = string.match(name, '^(%d+):(%d+)$')
	if not slot then
		return 'name-unreadable'
	end
	local _, highest = numbers(w, slot)
	if not highest or highest < tonumber(seq) then
		return 'seq-behind'
	end
end

local function look_batch(w, name)
	if redis.call('EXISTS', key_of(w, 'b:' .. name)) == 0 or not no_value(w, 'open', name) then
		return nil
	end
	return string.find(name, '^%d+:%d+$') and 'batch-without-open' or 'name-unreadable'
end

local function look_dead(w, id)
	if no_value(w, 'why', id) and redis.call('ZSCORE', key_of(w, 'dead'), id) then
		return 'dead-without-why'
	end
end

local function look_why(w, id)
	if not redis.call('ZSCORE', key_of(w, 'dead'), id) and not no_value(w, 'why', id) then
		return 'why-without-dead'
	end
end

-- The epoch under which a slot is leased; nil when it is not.
local function leased(w, slot)
	local value = redis.call('HGET', key_of(w, 'slots'), slot)
	return tonumber(string.match(value or '', '^(%d+):') or nil)
end

local function look_epoch(w, slot)
	local held = numbers(w, slot)
	local lease = leased(w, slot)
	if held and (lease or 0) <= held then
		return nil
	end
	if held or lease or not no_value(w, 'epoch', slot) then
		return 'epoch-behind'
	end
end

-- Repairing: what was done.  ---------------------------------------------------

-- One of the same name keeps what it says.
local function bury(w, member, due, record, reason)
	local birth = record_head(record) or due * 1000
	local id = known_member(member) and ce_id(member, birth, 0)
		or pct(member) .. '@' .. int(birth) .. '.0'
	local shown = string.sub(member, 1, 65535)
	if no_value(w, 'why', id) then
		redis.call('HSET', key_of(w, 'why'), id, struct.pack('>I1I2', 1, #reason)
			.. reason .. struct.pack('>I2', #shown) .. shown
			.. struct.pack('>I1I8c1', 1, due, string.byte(member) == 115 and '-' or 'i')
			.. record)
	end
	redis.call('ZADD', key_of(w, 'dead'), int(w.ms), id)
	return 'buried'
end

local function bury_name(w, zset, member)
	local score = tonumber(redis.call('ZSCORE', key_of(w, zset), member))
	local due = math.floor(math.min(math.max(score, 0), MAX_WHEN))
	local done = bury(w, member, due, '', 'its record is missing')
	redis.call('ZREM', key_of(w, zset), member)
	return done
end

local function bury_due(w, member)
	return bury_name(w, 'due', member)
end

local function bury_wait(w, member)
	return bury_name(w, 'wait', member)
end

local function wait_no_more(w, member)
	redis.call('ZREM', key_of(w, 'wait'), member)
	return 'removed'
end

local function bury_record(w, member)
	local record = redis.call('HGET', key_of(w, 'rec'), member)
	local done = bury(w, member, w.ms, record, unreadable(member, record))
	redis.call('HDEL', key_of(w, 'rec'), member)
	return done
end

-- The wake message may be refused: a sweep finds it as well.
local function due_now(w, member)
	if not w.woken then
		w.woken = true
		redis.pcall('PUBLISH', key_of(w, 'wake'), int(w.ms))
	end
	redis.call('ZADD', key_of(w, 'due'), int(w.ms), member)
	return 'put back'
end

local function forget_open(w, name)
	redis.call('HDEL', key_of(w, 'open'), name)
	return 'removed'
end

local function open_again(w, name)
	redis.call('HSET', key_of(w, 'open'), name, open_value(int(w.ms), 0, '', ''))
	return 'opened again'
end

local function forget_dead(w, id)
	redis.call('ZREM', key_of(w, 'dead'), id)
	redis.call('HDEL', key_of(w, 'why'), id)
	return 'removed'
end

local function list_dead(w, id)
	redis.call('ZADD', key_of(w, 'dead'), int(w.ms), id)
	return 'put back'
end

-- Above all that is known to be used; whoever holds the slot has to join anew.
local function raise(w, slot)
	local epoch, seq = numbers(w, slot)
	epoch, seq = math.max(epoch or 0, leased(w, slot) or 0), seq or 0
	for _, name in ipairs(redis.call('HKEYS', key_of(w, 'open'))) do
		local of, number = string.match(name, '^(%d+):(%d+)$')
		if of == slot then
			seq = math.max(seq, tonumber(number))
		end
	end
	redis.call('HSET', key_of(w, 'epoch'), slot, int(epoch + 1) .. '::' .. int(seq))
	redis.call('HDEL', key_of(w, 'slots'), slot)
	return 'raised'
end

local function raise_for(w, name)
	return raise(w, string.match(name, '^%d+'))
end

local REPAIRS = {
	['due-without-record'] = bury_due,
	['record-without-due'] = due_now,
	['wait-without-record'] = bury_wait,
	['wait-beside-due'] = wait_no_more,
	['record-unreadable'] = bury_record,
	['open-without-batch'] = forget_open,
	['batch-without-open'] = open_again,
	['dead-without-why'] = forget_dead,
	['why-without-dead'] = list_dead,
	['epoch-behind'] = raise,
	['seq-behind'] = raise_for,
}

-- Going on: names to look at, and the next cursor.  ----------------------------

local function scan_hash(w, key, cursor, count)
	local names, bytes, rounds = {}, 0, 0
	repeat
		local page = redis.call('HSCAN', key_of(w, key), cursor, 'COUNT', PIECE)
		cursor, rounds = page[1], rounds + 1
		for i = 1, #page[2], 2 do
			names[#names + 1] = page[2][i]
			bytes = bytes + #page[2][i + 1]
		end
	until cursor == '0' or #names >= count or bytes >= MOST_BYTES
		or rounds >= count / PIECE
	return names, cursor
end

local function scan_zset(w, key, cursor, count)
	local page = redis.call('ZSCAN', key_of(w, key), cursor, 'COUNT', count)
	local names = {}
	for i = 1, #page[2], 2 do
		names[#names + 1] = page[2][i]
	end
	return names, page[1]
end

-- Slots are as few as instances.
local function scan_epoch(w, key, cursor, count)
	local names, after = scan_hash(w, key, cursor, count)
	if cursor == '0' then
		for _, slot in ipairs(redis.call('HKEYS', key_of(w, 'slots'))) do
			names[#names + 1] = slot
		end
	end
	return names, after
end

-- One slot a step; the cursor is the lowest that may be next.
local function scan_batches(w, _, cursor)
	local from, slot, after = tonumber(cursor), nil, nil
	for _, name in ipairs(redis.call('HKEYS', key_of(w, 'epoch'))) do
		local n = decimal(name, 999999999)
		if n and n >= from and (not slot or n < slot) then
			slot, after = n, slot
		elseif n and n >= from and (not after or n < after) then
			after = n
		end
	end
	local names, _, last = {}, numbers(w, slot and int(slot) or '')
	for high = last or 0, math.max((last or 0) - LAST_NUMBERS, 0) + 1, -100 do
		local some, keys = {}, {}
		for n = high, math.max(high - 99, 1), -1 do
			some[#some + 1] = int(slot) .. ':' .. int(n)
			keys[#keys + 1] = key_of(w, 'b:' .. some[#some])
		end
		if redis.call('EXISTS', unpack(keys)) > 0 then
			for _, name in ipairs(some) do
				names[#names + 1] = name
			end
		end
	end
	return names, after and int(after) or '0'
end

local function scan_keys(w, key, cursor, count)
	local head = key_of(w, key)
	local page = redis.call('SCAN', cursor, 'MATCH',
		string.gsub(head, '[%*%?%[%]\\]', '\\%0') .. '*', 'COUNT', count)
	local names = {}
	for _, name in ipairs(page[2]) do
		names[#names + 1] = string.sub(name, #head + 1)
	end
	return names, page[1]
end

local PARTS = {
	keys = { 'b:', scan_keys, look_batch },
	batches = { 'b:', scan_batches, look_batch },
	open = { 'open', scan_hash, look_open },
	epoch = { 'epoch', scan_epoch, look_epoch },
	due = { 'due', scan_zset, look_due },
	rec = { 'rec', scan_hash, look_rec },
	wait = { 'wait', scan_zset, look_wait },
	dead = { 'dead', scan_zset, look_dead },
	why = { 'why', scan_hash, look_why },
}

-- What was found under one name, at the end of the answer.
local function found(w, answer, kind, name)
	local repair, done = REPAIRS[kind], ''
	if w.repair and repair then
		if not w.began then
			-- After it Redis refuses no write for want of memory.
			redis.call('HDEL', key_of(w, 'open'), '')
			w.began = true
		end
		done = repair(w, name)
	end
	answer[#answer + 1] = kind
	answer[#answer + 1] = name
	answer[#answer + 1] = done
end

local function lapse_walk(keys, argv)
	local part, cursor, count = PARTS[argv[1]], argv[2], decimal(argv[3], 10000)
	if not part or not count or count == 0 or not string.find(cursor, '^%d+$') then
		return bad('part, cursor or count')
	end
	redis.call('SELECT', NSDB)
	local w = { prefix = keys[1], ms = math.floor(now_us() / 1000), repair = argv[4] == '1',
		told = {} }
	local names = {}
	if argv[5] then
		for i = 5, #argv do
			names[#names + 1] = argv[i]
		end
	else
		names, cursor = part[2](w, part[1], cursor, count)
	end
	local answer = { cursor, int(#names) }
	for _, name in ipairs(names) do
		local kind = part[3](w, name)
		if kind and not w.told[name] then
			w.told[name] = true
			found(w, answer, kind, name)
		end
	end
	return answer
end
