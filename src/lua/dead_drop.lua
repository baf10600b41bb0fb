-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common app
--
-- dead_drop - throw a dead letter away.
--
-- KEYS: prefix.  ARGV: ce_id of the dead letter.
-- Answer: `dropped`.  LAPSE_NOTFOUND: no such dead letter.
local function lapse_dead_drop(keys, argv)
	local wrong = bad_plain_call(keys, argv, 1)
	if wrong then
		return wrong
	end
	redis.call('SELECT', NSDB)
	local dead = redis.call('ZREM', keys[1] .. ':dead', argv[1])
	local why = redis.call('HDEL', keys[1] .. ':why', argv[1])
	if dead + why == 0 then
		return redis.error_reply('LAPSE_NOTFOUND no dead letter has this ce_id')
	end
	return { 'dropped' }
end
