-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app job
-- flags: allow-oom
--
-- cancel - take back an event that is not claimed yet, even when it is due; or
-- a job, wherever it is.
--
-- KEYS: prefix.  ARGV: id.
-- Answer: `cancelled`, due ms (of a job in `wait` its deadline), the state it
-- was in (scheduled, in-flight, parked, waiting); or `in-flight`, for an event
-- that is no job and can't be stopped; or `not-found`.
local function lapse_cancel(keys, argv)
	local wrong = bad_call(keys, argv, 1, 1)
	if wrong then
		return wrong
	end
	if #argv > 1 then
		return bad_option(argv[2])
	end
	if not size_ok(argv[1], 1, MAX_NAME) then
		return bad('id must be 1 to ' .. MAX_NAME .. ' bytes')
	end
	local prefix, member = keys[1], 's:' .. argv[1]
	redis.call('SELECT', NSDB)
	local due = redis.call('ZSCORE', prefix .. ':due', member)
	if due then
		redis.call('ZREM', prefix .. ':due', member)
		redis.call('HDEL', prefix .. ':rec', member)
		return { 'cancelled', int(due), 'scheduled' }
	end
	local job = job_find(prefix, member)
	if not job then
		return not_pending(prefix, member)
	end
	local was, at = job.state, job.at
	if was == 'in-flight' then
		was, at = job_unpark(prefix, member, job.record)
	end
	job_move(job, 'gone')
	return { 'cancelled', int(at), was }
end
