-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job take
-- flags: allow-oom
--
-- cancel - take back an event that is not claimed yet, even when it is due; or
-- a job, wherever it is.
--
-- KEYS: prefix.  ARGV: id.
-- Answer: `cancelled`, due ms (of a job in `wait` its deadline), the state it
-- was in (scheduled, in-flight, parked, waiting, dying); or `in-flight`, for an
-- event that is no job and can't be stopped; or `dead`, when it died, its ce_id,
-- of the latest dead letter of that id, which stays (dead_drop is for that); or
-- `not-found`, among the latest 1,000 dead letters either.
local function lapse_cancel(keys, argv)
	local wrong = bad_plain_call(keys, argv, 1)
	if wrong then
		return wrong
	end
	redis.call('SELECT', NSDB)
	return take_back(keys[1], { argv[1] })[1]
end
