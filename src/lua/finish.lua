-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job
-- flags: allow-oom
--
-- finish - a consumer is done with a job.
--
--	WAITING, IN-FLIGHT (, SCHEDULED) -----> GONE
--
-- KEYS: prefix.  ARGV: ce_id as it was received.
-- Answer: `finished`, the state it was in.  LAPSE_STALE, and nothing changes,
-- for any but the life and attempt that count.
local function lapse_finish(keys, argv)
	local wrong = bad_plain_call(keys, argv, 1)
	if wrong then
		return wrong
	end
	redis.call('SELECT', NSDB)
	local job, refused = job_of_token(keys[1], argv[1], math.floor(now_us() / 1000))
	if not job then
		return refused
	end
	local was = job.state
	job_move(job, 'gone')
	return { 'finished', was }
end
