-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common
--
-- scan - one step through the keyspace, for keys with a TTL that the shadow
-- does not have.
--
-- ARGV: place; how many keys to look at, about; a pattern of Redis' that all of
-- them match, empty for none; then the databases in rising order, none for all
-- there are.  The place is one of:
--
--	(empty)		the beginning of a pass
--	?<ms>		the same; but for so many ms the caller has heard all there
--			was, so a pass that began since then, whoever's it is,
--			needs no more than to be brought to its end
--	=<place>	where the last step ended, and what was found up to there
--			is registered: it is remembered for the next in rank
--	<place>		where the last step ended
--
-- Answer: the place to go on at, empty at the end, `-` when the pass was at its
-- end before; how many were looked at; then k:<db>:<key> of each that is to be
-- registered.
--
-- Keys that are overdue expire as they are met.  `scan` remembers the pass: when
-- it `begun` (ms), its `place`, when that was (`at`), how many keys it has
-- `looked` at of the `keys` that there were, and when it was `done`.

local MAX_NAME = 1024
local SLACK_MS = 2

-- Of this server, those that hold keys.
local function databases_there()
	local list = {}
	for db in string.gmatch(redis.call('INFO', 'keyspace'), 'db(%d+):') do
		list[#list + 1] = tonumber(db)
	end
	table.sort(list)
	return list
end

-- The first database above `db`; nil past the last.
local function database_after(list, db)
	for i = 1, #list do
		if list[i] > db then
			return list[i]
		end
	end
	return nil
end

-- The keys there are in those databases.
local function count_keys(list)
	local n = 0
	for i = 1, #list do
		if not redis.pcall('SELECT', list[i]).err then
			n = n + redis.call('DBSIZE')
		end
	end
	redis.call('SELECT', NSDB)
	return n
end

-- Database and cursor to go on at; nil: there is nothing to look at.
local function begin(s)
	redis.pcall('HSET', s.state, 'begun', s.begun, 'at', s.begun, 'place', '',
		'looked', '0', 'keys', int(count_keys(s.list)))
	return database_after(s.list, -1), '0'
end

local function take_over(s, age)
	local held = redis.call('HMGET', s.state, 'begun', 'place', 'done')
	if (tonumber(held[1] or nil) or -1) < tonumber(s.begun) - age then
		return begin(s)
	end
	s.begun = held[1]
	local db, cursor = string.match(held[2] or '', '^(%d+):(%d+)$')
	if db then
		return tonumber(db), cursor
	elseif held[3] and tonumber(held[3]) >= tonumber(held[1]) then
		s.over = true
		return nil
	end
	return database_after(s.list, -1), '0'
end

-- Sets s.begun to the pass that it is.
local function locate(s, place)
	local age = string.match(place, '^%?(%d+)$')
	if age then
		return take_over(s, tonumber(age))
	elseif place == '' then
		return begin(s)
	end
	local sign, begun, db, cursor = string.match(place, '^(=?)(%d+)/(%d+):(%d+)$')
	s.begun = begun
	if sign == '=' and redis.call('HGET', s.state, 'begun') == begun then
		redis.pcall('HSET', s.state, 'place', db .. ':' .. cursor, 'at', int(s.ms))
	end
	return tonumber(db), cursor
end

-- A pass that another has begun since is not ours to tell of.  Out of memory
-- nothing is remembered, and no harm done.
local function remember(s, looked, at_end)
	local held = redis.call('HMGET', s.state, 'begun', 'looked')
	if held[1] ~= s.begun then
		return
	end
	redis.pcall('HSET', s.state, 'looked', int(tonumber(held[2] or 0) + looked))
	if at_end then
		redis.pcall('HSET', s.state, 'place', '', 'at', int(s.ms), 'done', int(s.ms))
	end
end

local function ends(exact, ms, key)
	local at = redis.call(exact and 'PEXPIRETIME' or 'PTTL', key)
	return at >= 0 and (exact and at or ms + at) or nil
end

-- Whether the shadow has it at about that time.
local function in_shadow(prefix, exact, member, at)
	local score = tonumber(redis.call('ZSCORE', prefix .. ':due', member) or nil)
	return score and math.abs(score - at) <= (exact and 0 or SLACK_MS)
end

local function scan_keys(db, cursor, count, pattern)
	if redis.pcall('SELECT', db).err then
		return { '0', {} }
	elseif pattern == '' then
		return redis.call('SCAN', cursor, 'COUNT', count)
	end
	return redis.call('SCAN', cursor, 'COUNT', count, 'MATCH', pattern)
end

local function lapse_scan(keys, argv)
	local prefix, list = keys[1], {}
	local ms = math.floor(now_us() / 1000)
	local exact = redis.REDIS_VERSION_NUM and redis.REDIS_VERSION_NUM >= 0x070000
	redis.call('SELECT', NSDB)
	for i = 4, #argv do
		list[#list + 1] = tonumber(argv[i])
	end
	if #list == 0 then
		list = databases_there()
	end
	local s = { state = prefix .. ':scan', ms = ms, begun = int(ms), list = list }
	local db, cursor = locate(s, argv[1])
	if not db then
		if not s.over then
			remember(s, 0, true)
		end
		return { s.over and '-' or '', '0' }
	end
	local found = scan_keys(db, cursor, argv[2], argv[3])
	local members, times = {}, {}
	for _, key in ipairs(found[2]) do
		local at = ends(exact, ms, key)
		if at and #key > 0 and #key <= MAX_NAME then
			members[#members + 1] = 'k:' .. int(db) .. ':' .. key
			times[#members] = at
		end
	end
	redis.call('SELECT', NSDB)
	if found[1] == '0' then
		db = database_after(list, db)
	end
	-- With a pattern SCAN tells of few, and looks at as many.
	remember(s, argv[3] == '' and #found[2] or tonumber(argv[2]), not db)
	local answer = { db and s.begun .. '/' .. int(db) .. ':' .. found[1] or '', int(#found[2]) }
	for i = 1, #members do
		if not in_shadow(prefix, exact, members[i], times[i]) then
			answer[#answer + 1] = members[i]
		end
	end
	return answer
end
