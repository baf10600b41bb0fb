-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record aside app
--
-- setex - SET a key with a TTL and announce its expiry, in one step.
--
-- KEYS: prefix, watched key.
-- ARGV: ttl (ms, or `+<ms>` or `@<ms>`), value, then options: `db` of the
-- key, `copy 0` (the event goes without the value).
-- Answer: `set` or `replaced` (an announced expiry), due ms, ce_id.  Without
-- a copy there is no record, and the ce_id, given at the claim, is empty.
--
-- A key that expired before anybody could claim it may be set again: its old
-- life moves aside to an `e:` member and is claimed from there.
--
-- SET is the first write: when Redis is out of memory it is refused, and with
-- it the call; what follows is then refused no more.

local function setex_options(argv)
	local given = {}
	for i = 3, #argv, 2 do
		local name, value = argv[i], argv[i + 1]
		if name ~= 'db' and name ~= 'copy' then
			return nil, bad_option(name)
		elseif given[name] then
			return nil, bad_twice(name)
		elseif name == 'copy' and value ~= '0' and value ~= '1' then
			return nil, bad('copy must be 0 or 1')
		end
		given[name] = value
	end
	return given
end

-- In which `db` the key is gone.  Looking deletes it when it is overdue, and
-- Redis tells everybody.
local function expired(db, key)
	redis.call('SELECT', db)
	local there = redis.call('EXISTS', key) == 1
	redis.call('SELECT', NSDB)
	return not there
end

local function lapse_setex(keys, argv)
	local wrong = bad_call(keys, argv, 2, 2)
	if wrong then
		return wrong
	end
	local prefix, key, value = keys[1], keys[2], argv[2]
	if not watched_ok(prefix, key) then
		return bad('watched key must be 1 to ' .. MAX_NAME .. ' bytes, outside the namespace')
	end
	if #value > MAX_PAYLOAD then
		return bad('value must be at most ' .. MAX_PAYLOAD .. ' bytes')
	end
	local given, refused = setex_options(argv)
	if not given then
		return refused
	end
	redis.call('SELECT', NSDB)
	local db, none = watched_db(given.db or '0')
	if not db then
		return none
	end
	local us, now = clock()
	local due, text = when(string.find(argv[1], '^%d') and '+' .. argv[1] or argv[1], us)
	if not due then
		return bad(text)
	end
	if due <= math.floor(us / 1000) then
		return bad('ttl must end in the future')
	end

	local member, birth = 'k:' .. int(db) .. ':' .. key, us
	local score = redis.call('ZSCORE', prefix .. ':due', member)
	local record = score and redis.call('HGET', prefix .. ':rec', member)
	local aside = score and tonumber(score) * 1000 <= us and expired(db, key)
	if score then
		-- A life that is put aside without a birth of its own gets this one.
		birth = math.max(us, (record_head(record) or (aside and us) or 0) + 1)
	end
	wake(prefix, text, now)

	redis.call('SELECT', db)
	redis.call('SET', key, value, 'PXAT', text)
	redis.call('SELECT', NSDB)
	if aside then
		move_aside(prefix, member, score, record, us)
	end
	redis.call('ZADD', prefix .. ':due', text, member)
	local answer = { score and not aside and 'replaced' or 'set', text, '' }
	if given.copy ~= '0' then
		redis.call('HSET', prefix .. ':rec', member, record_pack(birth, 0, 'p' .. value))
		answer[3] = ce_id(member, birth, 0)
	elseif record then
		redis.call('HDEL', prefix .. ':rec', member)
	end
	return answer
end
