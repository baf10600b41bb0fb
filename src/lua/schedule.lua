-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms store
--
-- schedule - store an event, in place of a pending one of the same id.
--
-- KEYS: prefix.
-- ARGV: id, time, topic, key (empty: none), payload, then options: `nx 1`,
-- `if_due_before` time, `type`, `content-type`, `header.<name>`, and for a job
-- (job.lua) `ttr` ms, `attempts` (5), `backoff` <first ms>:<factor>:<most ms>
-- (none).
-- Answer: `scheduled` or `replaced`, due ms, ce_id.
--
-- ZADD is the first write: when Redis is out of memory it is refused, and
-- with it the call; what follows is then refused no more.

-- Why it may not take the place of what there is; nil when it may.
local function forbidden(prefix, member, given, us)
	local wrong = given.nx and must_be_new(prefix, member)
	if wrong or not given.if_due_before then
		return wrong
	end
	return store_too_late(given, redis.call('ZSCORE', prefix .. ':due', member), us)
end

local function lapse_schedule(keys, argv)
	local wrong = bad_call(keys, argv, 1, 5)
	if wrong then
		return wrong
	end
	redis.call('SELECT', NSDB)
	local us, now = clock()
	local member, due, text, fields, given = store_read(argv, 0, #argv, us)
	if not member then
		return due
	end
	local prefix = keys[1]
	wrong = given and forbidden(prefix, member, given, us)
	if wrong then
		return wrong
	end
	wake(prefix, text, now)
	local is_new = redis.call('ZADD', prefix .. ':due', text, member) == 1
	if not is_new then
		us = math.max(us, (record_head(redis.call('HGET', prefix .. ':rec', member)) or 0) + 1)
		now = int(us)
	end
	local fresh = redis.call('HSET', prefix .. ':rec', member, store_head(us) .. fields .. argv[5])
	if is_new and fresh == 0 then
		job_replaced(prefix, member)
	end
	return { is_new and fresh == 1 and 'scheduled' or 'replaced', text, pct(member) .. '@' .. now .. '.0' }
end
