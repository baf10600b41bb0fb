-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job
-- flags: no-writes
--
-- show - what is known of an event, or of a watched key's coming expiry.
--
-- KEYS: prefix.
-- ARGV: id, then options: `watched 1` (the argument is a watched key), `db`,
-- `older` (see below).
-- Answer: a flat list of names and values: `state` (scheduled, in-flight,
-- parked, waiting, dying, dead, not-found), and when it was found `due`; of a
-- job that waits `deadline` instead, of what is dead `died`, `reason`; when it
-- has a record `ce_id`, `attempt`, `birth` and what the record holds of `ttr`,
-- `attempts`, `backoff`, `history` (number, how and when it ended, why; once for
-- each of the latest attempts), `topic`, `key`, `type`, `content-type`,
-- `header.<name>`, `payload`, `bytes` (of the payload), `record-bytes`, or
-- `unreadable` with what is wrong with it.  A pending life is shown before one in
-- flight, and that before a dead one, which is looked for among DEAD_LOOK dead
-- letters at a time, the latest first: `not-found` comes with `older` when there
-- are more, and that as an option of the next call goes on behind them.

local DEAD_LOOK = 1000

local SHOWN = { t = 'topic', k = 'key', y = 'type', c = 'content-type', p = 'payload' }

local function show_record(answer, member, record)
	local function add(name, value)
		answer[#answer + 1] = name
		answer[#answer + 1] = value
	end
	local fields, wrong = record_fields(record)
	if not fields then
		add('unreadable', wrong)
		return answer
	end
	local birth, attempt = record_head(record)
	add('ce_id', ce_id(member, birth, attempt))
	add('attempt', int(attempt))
	add('birth', int(birth))
	for i = 1, #fields, 2 do
		local tag, value = fields[i], fields[i + 1]
		if tag == 'j' then
			local t = job_terms(record)
			add('ttr', int(t.ttr))
			add('attempts', int(t.attempts))
			add('backoff', int(t.first) .. ':' .. t.factor / 1000 .. ':' .. int(t.most))
		elseif tag == 'a' then
			local n, ended, kind = struct.unpack('>I2I8c1', value)
			add('history', int(n + 1) .. (kind == 'f' and ' failed ' or ' late ')
				.. int(ended) .. (#value > 11 and ' ' .. string.sub(value, 12) or ''))
		elseif tag == 'h' then
			local name, text = string.match(value, '^(%Z+)%z(.*)$')
			add('header.' .. name, text)
		else
			add(SHOWN[tag], value)
		end
		if tag == 'p' then
			add('bytes', int(#value))
		end
	end
	add('record-bytes', int(#record))
	return answer
end

-- The latest dead letter of that member, or that it was not found, when `older`
-- letters are not looked at.
local function show_dead(prefix, member, older)
	local head, last = pct(member) .. '@', older + DEAD_LOOK
	local dead = redis.call('ZRANGE', prefix .. ':dead', int(-last), int(-1 - older), 'WITHSCORES')
	for i = #dead - 1, 1, -2 do
		if string.sub(dead[i], 1, #head) == head then
			local why = redis.call('HGET', prefix .. ':why', dead[i])
			local _, record, reason, due = obituary_open(why or '')
			local answer = { 'state', 'dead', 'died', int(dead[i + 1]), 'reason', reason or '',
				'due', due and int(due) or '-1' }
			return record and record ~= '' and show_record(answer, member, record)
				or answer
		end
	end
	local answer = { 'state', 'not-found' }
	if redis.call('ZCARD', prefix .. ':dead') > last then
		answer[3], answer[4] = 'older', int(last)
	end
	return answer
end

-- The member that the arguments name, and what `older` says; nil, error.
local function show_member(argv)
	local given = {}
	for i = 2, #argv, 2 do
		local name, value = argv[i], argv[i + 1]
		if name ~= 'watched' and name ~= 'db' and name ~= 'older' then
			return nil, bad_option(name)
		elseif given[name] then
			return nil, bad_twice(name)
		elseif name == 'watched' and value ~= '1' then
			return nil, bad('watched must be 1')
		elseif name == 'older' and not decimal(value, 9999999999) then
			return nil, bad('older must be a plain decimal')
		end
		given[name] = value
	end
	if not given.watched and given.db then
		return nil, bad('db is for watched keys')
	elseif not given.watched then
		return 's:' .. argv[1], given.older
	end
	local db, wrong = watched_db(given.db or '0')
	return db and 'k:' .. int(db) .. ':' .. argv[1], wrong or given.older
end

-- As in_flight: of a job the life that counts, whatever else is beside it.
local function show_flight(prefix, member)
	local record = redis.call('HGET', prefix .. ':rec', member)
	if record and is_job(record) then
		local batch, _, envelope, open = job_flight(prefix, member, record)
		if batch then
			return batch, envelope, open
		end
	end
	return in_flight(prefix, member)
end

local function lapse_show(keys, argv)
	local wrong = bad_call(keys, argv, 1, 1)
	if wrong then
		return wrong
	end
	if not size_ok(argv[1], 1, MAX_NAME) then
		return bad('id must be 1 to ' .. MAX_NAME .. ' bytes')
	end
	redis.call('SELECT', NSDB)
	local prefix = keys[1]
	local member, older = show_member(argv)
	if not member then
		return older
	elseif older then
		return show_dead(prefix, member, tonumber(older))
	end
	local due = redis.call('ZSCORE', prefix .. ':due', member)
	if due then
		local record = redis.call('HGET', prefix .. ':rec', member)
		local dying = record and is_job(record) and is_spent(record)
		local answer = { 'state', dying and 'dying' or 'scheduled', 'due', int(due) }
		return record and show_record(answer, member, record) or answer
	end
	local deadline = redis.call('ZSCORE', prefix .. ':wait', member)
	if deadline then
		return show_record({ 'state', 'waiting', 'deadline', int(deadline) }, member,
			redis.call('HGET', prefix .. ':rec', member) or '')
	end
	local batch, envelope, open = show_flight(prefix, member)
	if not batch then
		return envelope or show_dead(prefix, member, 0)	-- or unsure
	end
	local parked = string.find(open, '^%d+ %d+ %d+ ')
	local answer = { 'state', parked and 'parked' or 'in-flight' }
	local at, _, record = envelope_open(envelope)
	if not at then
		answer[3], answer[4] = 'unreadable', 'no readable envelope'
		return answer
	end
	answer[3], answer[4] = 'due', int(at)
	return record ~= '' and show_record(answer, member, record) or answer
end
