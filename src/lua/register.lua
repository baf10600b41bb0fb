-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record aside value app
--
-- register - bring the shadow in line with watched keys that something was
-- heard of, or that a scan came across.
--
-- ARGV: for each key: member (k:<db>:<key>); signs; the largest value to copy,
-- `-` for none; how many ms ago it was last heard to expire, and how many ms ago
-- something was last heard that gave it another value, `-` if it was not.
-- The signs are letters:
--
--	d	what was heard last is that the key was deleted, renamed or moved
--	v	what was heard last is that it was evicted
--	e	an eviction is an event too
--
-- The key itself decides; the signs only tell what it can't tell any more:
--
--	there, with a TTL	registered, or the shadow follows
--	there, without one	un-registered
--	gone, deleted		cancelled
--	gone, evicted		cancelled, or due now as io.lapsed.evicted
--	gone			left as it is: a claim decides at its due time
--
-- A life that was due when its key was heard to expire, and whose key is there
-- again, moves aside and is claimed from there.
--
-- Answer: ms of Redis' clock, then how many were: registered, moved to another
-- time, un-registered, cancelled, moved aside, evicted and made events, evicted
-- and dropped, left without their value.
--
-- What is asked again changes nothing.  Out of memory, Redis refuses the first
-- key that is to be added, and with it the rest of the call.

-- Redis before 7.0 tells only what is left of a TTL, by a clock that is a
-- little behind TIME.
local SLACK_MS = 2
local EVICTED = 'io.lapsed.evicted'

local function new_register(keys)
	local us, text = clock()
	return {
		prefix = keys[1], us = us, now = text, ms = math.floor(us / 1000), db = NSDB,
		exact = redis.REDIS_VERSION_NUM and redis.REDIS_VERSION_NUM >= 0x070000,
		registered = 0, moved = 0, unregistered = 0, cancelled = 0, aside = 0,
		evicted = 0, dropped = 0, bare = 0,
	}
end

local function choose(r, db)
	if r.db ~= db then
		redis.call('SELECT', db)
		r.db = db
	end
end

-- nil when it is gone (a database that this server does not have holds no
-- key); -1 without a TTL; else when it ends, ms.
local function ends_at(r, db, key)
	if r.db ~= db and redis.pcall('SELECT', db).err then
		return nil
	end
	r.db = db
	local at = redis.call(r.exact and 'PEXPIRETIME' or 'PTTL', key)
	if at < 0 then
		return at == -1 and -1 or nil
	end
	return r.exact and at or r.ms + at
end

local function no_value_header(why)
	return record_field('h', 'ce_lapsevalue\0' .. why)
end

-- The fields of a record with the value that the key has now.
local function copied(r, k)
	choose(r, k.db)
	local value, kind = value_copy(k.key, k.max)
	choose(r, NSDB)
	if not value then
		r.bare = r.bare + 1
		return no_value_header(kind)
	end
	return (kind and record_field('c', kind) or '') .. 'p' .. value
end

-- What is in a record behind its birth and attempt.
local function fields_of(record)
	return record and string.sub(record, 12) or nil
end

-- A life that was known before: is it the one that was heard to expire?
local function has_expired(r, k)
	return k.score and k.age and k.score <= r.ms - k.age + SLACK_MS
end

local function put_aside(r, k)
	move_aside(r.prefix, k.member, k.score, k.record, r.us, 'h')
	r.aside = r.aside + 1
	-- A life without a record gets its birth there.
	k.last_birth = record_head(k.record) or r.us
	k.score, k.record = nil, nil
end

local function forget(r, k)
	redis.call('ZREM', r.prefix .. ':due', k.member)
	redis.call('HDEL', r.prefix .. ':rec', k.member)
end

local function follows(r, k)
	if r.exact then
		return k.score == k.at
	end
	return k.score and math.abs(k.score - k.at) <= SLACK_MS
end

-- Whether the value may be another than that in the record: what was made after
-- the word came has it, and what others wrote since is not asked for.
local function is_set(r, k)
	local birth = record_head(k.record)
	return k.set_age and not (birth and birth >= r.us - k.set_age * 1000)
end

-- Another life if the value is another, else the same one at another time.
local function register(r, k)
	local fields
	local set = is_set(r, k)
	if not follows(r, k) then
		redis.call('ZADD', r.prefix .. ':due', int(k.at), k.member)
		r[k.score and 'moved' or 'registered'] = r[k.score and 'moved' or 'registered'] + 1
	elseif not set then
		return
	end
	if k.max and (set or not k.score) then
		fields = copied(r, k)
	end
	if fields and fields ~= fields_of(k.record) then
		local birth = math.max(r.us, (record_head(k.record) or k.last_birth or 0) + 1)
		redis.call('HSET', r.prefix .. ':rec', k.member, record_pack(birth, 0, fields))
	elseif not k.score and not fields then
		-- No record of a life before may be taken for this one's.
		redis.call('HDEL', r.prefix .. ':rec', k.member)
	end
end

-- Due now, under a name of its own: the key may come back.
local function evicted(r, k)
	if k.signs.e then
		local birth = record_head(k.record) or r.us
		local member = 'e:' .. int(birth) .. string.sub(k.member, 2)
		redis.call('ZADD', r.prefix .. ':due', int(r.ms), member)
		redis.call('HSET', r.prefix .. ':rec', member,
			record_end(record_pack(birth, 0, record_field('y', EVICTED)
				.. (fields_of(k.record) or '')), 'h'))
		r.evicted = r.evicted + 1
	else
		r.dropped = r.dropped + 1
	end
	forget(r, k)
end

local function gone(r, k)
	-- Of a life that has expired the claim tells: what was deleted or evicted is
	-- one that came after it, and that nobody has registered.
	if not k.score or has_expired(r, k) then
		return
	elseif k.signs.v then
		evicted(r, k)
	elseif k.signs.d then
		forget(r, k)
		r.cancelled = r.cancelled + 1
	end
end

local function bring_in_line(r, k)
	if k.at and has_expired(r, k) and k.at ~= k.score then
		put_aside(r, k)
		forget(r, k)
	end
	if not k.at then
		gone(r, k)
	elseif k.at ~= -1 then
		register(r, k)
	elseif k.score then
		forget(r, k)
		r.unregistered = r.unregistered + 1
	end
end

local function read_key(r, argv, i)
	local db, key = string.match(argv[i], '^k:(%d+):(.+)$')
	local k = {
		member = argv[i], db = tonumber(db), key = key, signs = {},
		max = tonumber(argv[i + 2]), age = tonumber(argv[i + 3]),
		set_age = tonumber(argv[i + 4]),
	}
	for letter in string.gmatch(argv[i + 1], '%a') do
		k.signs[letter] = true
	end
	k.at = ends_at(r, k.db, key)
	choose(r, NSDB)
	k.score = tonumber(redis.call('ZSCORE', r.prefix .. ':due', k.member) or nil)
	k.record = redis.call('HGET', r.prefix .. ':rec', k.member) or nil
	return k
end

-- The daemons wait for nothing before the first that is due.
local function wake_for(r, list)
	local first
	for _, k in ipairs(list) do
		if k.at and k.at ~= -1 and not follows(r, k) and (not first or k.at < first) then
			first = k.at
		end
	end
	if first and first > r.ms then
		wake(r.prefix, int(first), r.now)
	end
end

local function lapse_register(keys, argv)
	redis.call('SELECT', NSDB)
	local r, list = new_register(keys), {}
	for i = 1, #argv, 5 do
		list[#list + 1] = read_key(r, argv, i)
	end
	wake_for(r, list)
	for _, k in ipairs(list) do
		bring_in_line(r, k)
	end
	if r.evicted > 0 then
		redis.call('PUBLISH', r.prefix .. ':wake', int(r.ms))
	end
	return { int(r.ms), int(r.registered), int(r.moved), int(r.unregistered),
		int(r.cancelled), int(r.aside), int(r.evicted), int(r.dropped), int(r.bare) }
end
