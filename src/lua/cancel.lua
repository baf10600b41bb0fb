-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common app
-- flags: allow-oom
--
-- cancel - take back an event that is not claimed yet, even when it is due.
--
-- KEYS: prefix.  ARGV: id.
-- Answer: `cancelled`, due ms; or `in-flight`; or `not-found`.
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
	if not due then
		return not_pending(prefix, member)
	end
	redis.call('ZREM', prefix .. ':due', member)
	redis.call('HDEL', prefix .. ':rec', member)
	return { 'cancelled', int(due) }
end
