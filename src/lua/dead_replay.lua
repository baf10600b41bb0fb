-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job
--
-- dead_replay - give a dead event a new life: the same id and record, a new
-- birth, attempt 0, due now.
--
-- KEYS: prefix.  ARGV: ce_id of the dead letter.
-- Answer: `replayed`, due ms, the new ce_id.  LAPSE_NOTFOUND: no such dead
-- letter.  LAPSE_EXISTS: its id is pending, in flight or waiting.  LAPSE_BADRECORD:
-- what is left of it can't be read, so it would only die again.
--
-- An expiry comes back as an `e:` member: that its key may be there again
-- says nothing of the expiry that was.

local function has_topic(fields)
	for i = 1, #fields, 2 do
		if fields[i] == 't' then
			return true
		end
	end
	return false
end

-- The new member, its birth and record; nil when it can't live again.
local function reborn(obituary, us)
	local member, record, _, _, certainty = obituary_open(obituary)
	local fields = member and record_fields(record)
	if not fields then
		return nil
	end
	local birth = math.max(us, record_head(record) + 1)
	local key = string.match(member, '^k(:%d+:.+)$') or string.match(member, '^e:%d+(:%d+:.+)$')
	if key then
		member = 'e:' .. int(birth) .. key
		record = record_end(record, certainty)
	elseif string.sub(member, 1, 2) ~= 's:' or not has_topic(fields) then
		return nil
	end
	return member, birth, record_pack(birth, 0, job_afresh(record))
end

local function lapse_dead_replay(keys, argv)
	local wrong = bad_plain_call(keys, argv, 1)
	if wrong then
		return wrong
	end
	local prefix, name = keys[1], argv[1]
	redis.call('SELECT', NSDB)
	local obituary = redis.call('HGET', prefix .. ':why', name)
	if not obituary then
		return redis.error_reply('LAPSE_NOTFOUND no dead letter has this ce_id')
	end
	local us, now = clock()
	local member, birth, record = reborn(obituary, us)
	if not member then
		return redis.error_reply('LAPSE_BADRECORD the dead letter is unreadable')
	end
	wrong = must_be_new(prefix, member)
	if wrong then
		return wrong
	end
	local due = string.sub(now, 1, -4)
	wake(prefix, due, now)
	-- Added first, removed last: refused half way it must not be lost.  A
	-- removal of nothing goes before, after which Redis refuses no write for
	-- want of memory.
	redis.call('HDEL', prefix .. ':why', '')
	redis.call('HSET', prefix .. ':rec', member, record)
	redis.call('ZADD', prefix .. ':due', due, member)
	redis.call('ZREM', prefix .. ':dead', name)
	redis.call('HDEL', prefix .. ':why', name)
	return { 'replayed', due, ce_id(member, birth, 0) }
end
