-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job
--
-- fail - a consumer gives a job back.
--
--	WAITING, IN-FLIGHT (, SCHEDULED) --+--> SCHEDULED, attempt + 1
--	                                   +--> DYING, when that was the last
--
-- KEYS: prefix.
-- ARGV: ce_id as it was received, reason (may be empty; beyond 1,024 bytes it is
-- cut, and ends in `...`), `+ms` from now instead of the pause that its terms say.
-- Answer: `retry`, due ms, ce_id of the next attempt; or `dead`, ms.
-- LAPSE_STALE as for finish.

-- Not in the middle of a UTF-8 character.
local function reason_cut(reason)
	if #reason <= MAX_REASON then
		return reason
	end
	local to = MAX_REASON - 3
	while to > MAX_REASON - 7 and string.find(reason, '^[\128-\191]', to + 1) do
		to = to - 1
	end
	return string.sub(reason, 1, to) .. '...'
end

local function lapse_fail(keys, argv)
	if #keys ~= 1 or not prefix_ok(keys[1]) or #argv < 1 or #argv > 3 then
		return bad('one prefix such as lapse:{0}, a ce_id, and perhaps a reason and +<ms> are needed')
	end
	local pause
	if argv[3] then
		pause = string.byte(argv[3]) == 43 and decimal(string.sub(argv[3], 2), MAX_BACKOFF)
		if not pause then
			return bad('time must be +<ms>, 0 to ' .. MAX_BACKOFF)
		end
	end
	redis.call('SELECT', NSDB)
	local us, now = clock()
	local ms = math.floor(us / 1000)
	local job, refused = job_of_token(keys[1], argv[1], ms)
	if not job then
		return refused
	end
	local record = job_next(job.record, 'f', reason_cut(argv[2] or ''), ms)
	local at = is_spent(record) and ms
		or ms + (pause or job_pause(job.record, job.member, us))
	wake(keys[1], int(at), now)
	if job_retry(job, record, at) == 'dying' then
		return { 'dead', int(at) }
	end
	return { 'retry', int(at), ce_id(job.member, record_head(job.record)) }
end
