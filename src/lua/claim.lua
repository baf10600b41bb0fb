-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record batch terms job
--
-- claim - move what is due, records included, from the shadow into a batch.
--
-- ARGV: slot, epoch, nonce, seq, limit, bytes, hush ms, window ms, then
-- (member, age ms) of every watched key that was heard to expire, `limit` at
-- most.  A `-` behind the age is for a key that matters only if it is in the
-- shadow; a `!` for one whose life in the shadow that must have been; a `+` behind
-- the last one: more were heard, and come with the next claim.
-- Answer: see docs/protocol.md, "a batch answer".
--
-- A watched key is looked at itself:
--
--	there, with a later TTL		the shadow follows
--	there, without a TTL		un-registered
--	there, in its last millisecond	looked at again in the next
--	gone by our look		claimed, `found`
--	gone before we looked		claimed, `heard` if a notification came,
--					else `inferred`, after `hush` ms in
--					which the notification may yet come
--	heard with a `!`, there again	claimed, `heard`; the new life takes its place
--
-- A heard key that is not in the shadow is claimed once per `window`,
-- whoever asks.  `seen` remembers every claim of a watched key, since our own
-- look makes Redis tell everybody of the expiry that we have just claimed.
--
-- A job whose deadline has passed is due again, or dying, before that.  One that
-- is claimed keeps its record in `rec` (job.lua).
--
-- Goes on when Redis is out of memory, and loses nothing when it is refused
-- half way: see first_writes.

-- How long a key may outstay its TTL before it is claimed all the same
-- (Redis does not expire under import-mode).
local OUTSTAY_MS = 1000
-- Redis before 7.0 tells what is left of a TTL by a clock that is a little
-- behind TIME: an end that is not later by more than this is the same one.
local SLACK_MS = 2
-- `seen` is trimmed by this many at each claim that adds to it.
local TRIM = 100
-- Jobs beyond their deadline that one claim deals with.
local LATE = 200

-- What an answer has in front of its members and envelopes.
local HEAD = 7
local byte = string.byte	-- for loops over all that is due

local function new_claim(keys, argv)
	local us = now_us()
	return {
		prefix = keys[1], us = us, ms = math.floor(us / 1000),
		limit = tonumber(argv[5]), bytes = tonumber(argv[6]),
		hush = tonumber(argv[7]), window = tonumber(argv[8]),
		members = {}, answer = { '', '', '', '', '', '', '' }, ahead = {}, gone = {}, follow = {}, again = {},
		size = 0, absorbed = 0, next = nil, full = false, db = NSDB, taken = {}, expired = {},
		jobs = {}, has_jobs = false, has_keys = false,
	}
end

local function select_db(c, db)
	if c.db ~= db then
		redis.call('SELECT', db)
		c.db = db
	end
end

local function sooner(c, ms)
	if not c.next or ms < c.next then
		c.next = ms
	end
end

-- 'f' gone by this look, 'i' gone before it; else nil and when it ends, -1
-- without a TTL.  A database that this server does not have holds no key.
local function look(c, db, key)
	if not db or (c.db ~= db and redis.pcall('SELECT', db).err) then
		return 'i'
	end
	c.db = db
	local before = redis.call('DBSIZE')
	if redis.call('EXISTS', key) == 0 then
		return redis.call('DBSIZE') < before and 'f' or 'i'
	end
	if redis.REDIS_VERSION_NUM and redis.REDIS_VERSION_NUM >= 0x070000 then
		return nil, redis.call('PEXPIRETIME', key)
	end
	local left = redis.call('PTTL', key)
	return nil, left < 0 and -1 or c.ms + left
end

-- Reads the records of the next members of `list` (from `i`, every second) at
-- once: a call for each would cost more than all else.  Few at first, then as
-- many as seem to fit.  Gives the place of the last.
local function read_ahead(c, list, i)
	local n, names, at = #c.members, {}, 0
	local fit = n > 0 and math.floor((c.bytes - c.size) * n / (c.size + 1)) or 8
	local last = math.min(#list - 1, i + 2 * math.min(math.max(fit, 1), 200) - 2)
	for j = i, last, 2 do
		at = at + 1
		names[at] = list[j]
	end
	select_db(c, NSDB)
	local found = redis.call('HMGET', c.prefix .. ':rec', unpack(names))
	for j = 1, at do
		c.ahead[names[j]] = found[j]
	end
	return last
end

-- What stands in front of the record in its envelope.  Neighbours are often
-- due in the same millisecond.
local function envelope_head(c, due, certainty)
	if due ~= c.last_due or certainty ~= c.last_certainty then
		c.last_due, c.last_certainty = due, certainty
		c.last_head = struct.pack('>I1I8c1', 1, math.max(due, 0), certainty)
	end
	return c.last_head
end

-- Adds the member to the batch; false, and the claim is full, when its record
-- does not fit in any more.  Without a certainty the record tells it.
local function take(c, member, due, certainty)
	local n = #c.members
	if n >= c.limit then
		c.full = true
		return false
	end
	local record = c.ahead[member]
	if record == nil then
		select_db(c, NSDB)
		record = redis.call('HGET', c.prefix .. ':rec', member)
	end
	-- What has no record always fits: a key that only a notification tells of
	-- is not left for later.
	local size = c.size + (record and #record or 0)
	if record and n > 0 and size > c.bytes then
		c.full = true
		return false
	end
	if not record then
		-- A watched key without a copy is born here; a scheduled
		-- event without a record is for the daemon to bury.
		record = byte(member) == 115 and '' or struct.pack('>I1I8I2', 1, c.us, 0)
	end
	certainty = certainty or record_ended(record) or 'i'
	if byte(record, 12) == JOB_TAG and is_job(record) and not is_spent(record) then
		c.jobs[member] = true
		c.has_jobs = true
	end
	c.size = size
	c.members[n + 1] = member
	c.answer[HEAD + 2 * n + 1] = member
	c.answer[HEAD + 2 * n + 2] = envelope_head(c, due, certainty) .. record
	return true
end

local function split(c, member)
	local db, key = string.match(member, '^k:(%d+):(.*)$')
	c.has_keys = true
	return tonumber(db), key
end

-- The key is still there and ends at `at` (-1: never), not when we thought.
local function still_there(c, member, score, at)
	if at == -1 then
		c.gone[#c.gone + 1] = member
	elseif at > score + SLACK_MS and at >= c.ms then
		c.follow[#c.follow + 1] = int(at)
		c.follow[#c.follow + 1] = member
		sooner(c, at)
	elseif at + OUTSTAY_MS > c.ms then
		sooner(c, math.max(at, c.ms) + 1)
	else
		return take(c, member, score, 'i')
	end
	return true
end

-- `seen` has when it expired, not when somebody got round to asking.
local function take_heard(c, member, due, expired)
	c.expired[member] = expired
	return take(c, member, due, 'h')
end

-- This life was heard to expire, and the key is there again (until `at`): the
-- new life gets the place of the old one.
local function take_expired(c, member, score, at, expired)
	if not take_heard(c, member, score, expired) then
		return false
	end
	if at ~= -1 then
		c.again[#c.again + 1] = int(at)
		c.again[#c.again + 1] = member
		sooner(c, at)
	end
	return true
end

-- Whether this life was stored after the word of an expiry came.
local function born_after(c, member, expired)
	select_db(c, NSDB)
	local birth = record_head(redis.call('HGET', c.prefix .. ':rec', member))
	return birth and birth > expired * 1000
end

local function claim_heard(c, member, word)
	local db, key = split(c, member)
	local text, sign = string.match(word, '^(%d*)([-!]?)%+?$')
	local age = tonumber(text) or 0
	local expired = c.ms - age
	select_db(c, NSDB)
	local score = tonumber(redis.call('ZSCORE', c.prefix .. ':due', member) or nil)
	local seen = tonumber(redis.call('ZSCORE', c.prefix .. ':seen', member) or nil)
	local echo = seen and seen >= expired - c.window
	if not score then
		if echo or sign == '-' then
			c.absorbed = c.absorbed + 1
			return true
		end
		return take_heard(c, member, expired, expired)
	end
	local gone, at = look(c, db, key)
	if not gone then
		-- A claim from before the life in the shadow was due was of another.
		if sign == '!' and score <= c.ms and (not echo or seen < score)
			and score <= expired + SLACK_MS and at ~= score then
			return take_expired(c, member, score, at, expired)
		end
		-- Of its end the next claim may be told.
		return score > c.ms or c.more or still_there(c, member, score, at)
	end
	-- When it was heard, what is in the shadow was not due: the word may be of
	-- a life before, and is not of one that expires as we look.
	local before = score > expired + SLACK_MS
	if before and gone == 'f' then
		return take(c, member, math.min(score, c.ms), 'f')
	elseif before and (echo or born_after(c, member, expired)) then
		c.absorbed = c.absorbed + 1
		return true
	end
	return take_heard(c, member, math.min(score, c.ms), before and c.ms or expired)
end

local function claim_watched(c, member, score)
	local db, key = split(c, member)
	local gone, at = look(c, db, key)
	if not gone then
		return c.more or still_there(c, member, score, at)
	end
	if gone == 'i' and score + c.hush > c.ms then
		sooner(c, score + c.hush)
		return true
	end
	return take(c, member, score, gone)
end

local function claim_due(c)
	local room = c.limit - #c.members
	local due = redis.call('ZRANGEBYSCORE', c.prefix .. ':due', '-inf', c.ms,
		'WITHSCORES', 'LIMIT', 0, room)
	local last, text, score = 0, nil, nil
	for i = 1, #due, 2 do
		local member = due[i]
		if due[i + 1] ~= text then
			text = due[i + 1]
			score = tonumber(text)
		end
		if i > last then
			last = read_ahead(c, due, i)
		end
		if not c.taken[member] then
			local kind, colon = byte(member, 1, 2)
			local go
			if kind == 107 and colon == 58 then	-- k:
				go = claim_watched(c, member, score)
			else
				local aside = kind == 101 and colon == 58	-- e:
				go = take(c, member, score, not aside and '-' or nil)
			end
			if not go then
				break
			end
		end
	end
	c.full = c.full or #due / 2 >= room
end

-- Jobs beyond their deadline: due again after a pause, or dying.  What has no
-- record that can be read is due as it is, and is buried as such.
local function claim_late(c, name)
	local wait, rec = c.prefix .. ':wait', c.prefix .. ':rec'
	local late = redis.call('ZRANGEBYSCORE', wait, '-inf', c.ms, 'LIMIT', 0, LATE)
	if #late == 0 then
		return
	end
	local records = redis.call('HMGET', rec, unpack(late))
	first_writes(c.prefix, name)
	for i = 1, #late do
		local record = records[i]
		local job = { prefix = c.prefix, member = late[i], record = record, state = 'waiting' }
		if record and is_job(record) and record_fields(record) then
			local after = job_next(record, 't', '', c.ms)
			job_retry(job, after, is_spent(after) and c.ms
				or c.ms + job_pause(record, late[i], c.us))
		else
			job_move(job, 'scheduled', c.ms)
		end
	end
	if #late == LATE then
		sooner(c, c.ms)
	end
end

local function remember_seen(c)
	local seen, list = c.prefix .. ':seen', {}
	for i = 1, c.has_keys and #c.members or 0 do
		if byte(c.members[i]) == 107 then	-- k
			list[#list + 1] = int(c.expired[c.members[i]] or c.ms)
			list[#list + 1] = c.members[i]
		end
	end
	if #list == 0 then
		return
	end
	trim_seen(c.prefix, c.ms, TRIM + #list)
	in_pieces('ZADD', seen, list)
end

local function without_jobs(c)
	local list = {}
	for i = 1, #c.members do
		if not c.jobs[c.members[i]] then
			list[#list + 1] = c.members[i]
		end
	end
	return list
end

-- Everything found goes; nothing before this has written but claim_late.
local function followed(c)
	local list = {}
	for i = 2, #c.follow, 2 do
		list[#list + 1] = c.follow[i]
	end
	return list
end

local function commit(c, slot, epoch, nonce, seq)
	local due, rec = c.prefix .. ':due', c.prefix .. ':rec'
	select_db(c, NSDB)
	if #c.members > 0 then
		local name = slot .. ':' .. seq
		first_writes(c.prefix, name)
		in_pieces('HSET', c.prefix .. ':b:' .. name, c.answer, HEAD + 1)
		redis.call('HSET', c.prefix .. ':open', name, int(c.ms) .. ' 0')
		use_seq(c.prefix, slot, epoch, nonce, seq)
		remember_seen(c)
	end
	in_pieces('ZREM', due, c.members)
	in_pieces('HDEL', rec, c.has_jobs and without_jobs(c) or c.members)
	in_pieces('ZREM', due, c.gone)
	in_pieces('HDEL', rec, c.gone)
	in_pieces('ZADD', due, c.again)
	for i = 1, #c.follow, 2 do
		-- Refused when out of memory: followed at the next look.
		redis.pcall('ZADD', due, 'XX', c.follow[i], c.follow[i + 1])
	end
end

-- A claim that stopped early goes on at once; when all it saw must be looked
-- at again later, that is when.
local function next_due(c)
	local after = c.full and #c.members > 0 and '-inf' or '(' .. int(c.ms)
	local head = redis.call('ZRANGEBYSCORE', c.prefix .. ':due', after, '+inf',
		'WITHSCORES', 'LIMIT', 0, 1)
	if head[2] then
		sooner(c, tonumber(head[2]))
	end
	local waits = redis.call('ZRANGEBYSCORE', c.prefix .. ':wait', '(' .. int(c.ms),
		'+inf', 'WITHSCORES', 'LIMIT', 0, 1)
	if waits[2] then
		sooner(c, tonumber(waits[2]))
	end
	return c.next and int(c.next) or '-1'
end

local function lapse_claim(keys, argv)
	local prefix, slot, epoch, nonce, seq = keys[1], argv[1], argv[2], argv[3], argv[4]
	redis.call('SELECT', NSDB)
	local last, fenced = fence(prefix, slot, epoch, nonce)
	if not last then
		return fenced
	end
	local c = new_claim(keys, argv)
	if tonumber(seq) <= last then
		return batch_answer(prefix, c.us, slot, seq, true)
	end
	c.more = #argv > 8 and byte(argv[#argv], -1) == 43	-- +
	for i = 9, #argv, 2 do
		local member, before = argv[i], #c.members
		if not c.taken[member] then
			claim_heard(c, member, argv[i + 1])
			c.taken[member] = #c.members > before or nil
		end
	end
	select_db(c, NSDB)
	if not c.full then
		claim_late(c, slot .. ':' .. seq)
		claim_due(c)
	end
	commit(c, slot, epoch, nonce, seq)
	local head = { int(c.us), next_due(c), int(c.absorbed), followed(c), '0', '', '0' }
	for i = 1, HEAD do
		c.answer[i] = head[i]
	end
	return c.answer
end
