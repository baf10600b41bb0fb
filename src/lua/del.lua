-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common app
-- flags: allow-oom
--
-- del - delete a watched key and take back its announced expiry, even when
-- that is due but not claimed yet.
--
-- KEYS: prefix, watched key.  ARGV: options: `db` of the key.
-- Answer: `cancelled`, due ms; or `in-flight`; or `not-found`: what was
-- announced of the key, whether or not the key was there.
local function lapse_del(keys, argv)
	local wrong = bad_call(keys, argv, 2, 0)
	if wrong then
		return wrong
	end
	local prefix, key = keys[1], keys[2]
	if not watched_ok(prefix, key) then
		return bad('watched key must be 1 to ' .. MAX_NAME .. ' bytes, outside the namespace')
	end
	for i = 1, #argv, 2 do
		if argv[i] ~= 'db' then
			return bad_option(argv[i])
		elseif i > 1 then
			return bad_twice('db')
		end
	end
	redis.call('SELECT', NSDB)
	local db, none = watched_db(argv[2] or '0')
	if not db then
		return none
	end
	local member = 'k:' .. int(db) .. ':' .. key
	local due = redis.call('ZSCORE', prefix .. ':due', member)
	local answer = due and { 'cancelled', int(due) } or not_pending(prefix, member)

	redis.call('SELECT', db)
	redis.call('UNLINK', key)
	redis.call('SELECT', NSDB)
	if due then
		redis.call('ZREM', prefix .. ':due', member)
		redis.call('HDEL', prefix .. ':rec', member)
		local ms = math.floor(now_us() / 1000)
		if tonumber(due) <= ms then
			-- The key may have expired, and its notification be on
			-- the way: what we call cancelled must not be sent.
			redis.call('ZADD', prefix .. ':seen', int(ms), member)
		end
	end
	return answer
end
