-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job
--
-- reschedule - give a pending event another due time; it stays the same life.
--
-- KEYS: prefix.  ARGV: id, time.
-- Answer: `rescheduled`, due ms; or `in-flight`; or `waiting`, of a job that was
-- delivered (touch and fail are for that), or `dying`, of one without attempts
-- left; or `not-found`.
local function lapse_reschedule(keys, argv)
	local wrong = bad_plain_call(keys, argv, 2)
	if wrong then
		return wrong
	end
	if not size_ok(argv[1], 1, MAX_NAME) then
		return bad('id must be 1 to ' .. MAX_NAME .. ' bytes')
	end
	local prefix, member = keys[1], 's:' .. argv[1]
	redis.call('SELECT', NSDB)
	local us, now = clock()
	local due, text = when(argv[2], us)
	if not due then
		return bad(text)
	end
	local at = redis.call('ZSCORE', prefix .. ':due', member)
	if not at then
		return redis.call('ZSCORE', prefix .. ':wait', member) and { 'waiting' }
			or not_pending(prefix, member)
	end
	local job = job_find(prefix, member)
	if job and job.state == 'dying' then
		return { 'dying' }
	end
	wake(prefix, text, now)
	redis.call('ZADD', prefix .. ':due', 'XX', text, member)
	return { 'rescheduled', text }
end
