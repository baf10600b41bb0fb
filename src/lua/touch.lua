-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job
--
-- touch - a consumer needs more time for a job.
--
--	WAITING, IN-FLIGHT (, SCHEDULED) -----> WAITING, with a new deadline
--
-- KEYS: prefix.
-- ARGV: ce_id as it was received, `+ms` from now (its time to run unless given).
-- Answer: `touched`, the new deadline.  LAPSE_STALE as for finish.

-- What `+ms` adds, at most a week; nil, error.
local function job_span(text, least)
	local ms = string.byte(text) == 43 and decimal(string.sub(text, 2), MAX_TTR)
	if not ms or ms < least then
		return nil, bad('time must be +<ms>, ' .. least .. ' to ' .. MAX_TTR)
	end
	return ms
end

local function lapse_touch(keys, argv)
	if #keys ~= 1 or not prefix_ok(keys[1]) or #argv < 1 or #argv > 2 then
		return bad('one prefix such as lapse:{0}, a ce_id and perhaps +<ms> are needed')
	end
	local span, refused, job
	if argv[2] then
		span, refused = job_span(argv[2], 1)
		if not span then
			return refused
		end
	end
	redis.call('SELECT', NSDB)
	local ms = math.floor(now_us() / 1000)
	job, refused = job_of_token(keys[1], argv[1], ms)
	if not job then
		return refused
	end
	local deadline = int(ms + (span or job_terms(job.record).ttr))
	wake_deadline(keys[1], deadline, ms)
	job_move(job, 'waiting', deadline)
	return { 'touched', deadline }
end
