-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common
--
-- scan - one step through the keyspace, for keys with a TTL that the shadow
-- does not have.
--
-- ARGV: place, as the last step gave it, empty at the beginning; how many keys
-- to look at, about; a pattern of Redis' that all of them match, empty for
-- none; then the databases in rising order, none for all there are.
-- Answer: the place to go on at, empty at the end; how many were looked at;
-- then k:<db>:<key> of each that is to be registered.
--
-- Changes nothing, but that keys which are overdue expire as they are met.

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
	for i = 4, #argv do
		list[#list + 1] = tonumber(argv[i])
	end
	if #list == 0 then
		list = databases_there()
	end
	local text, cursor = string.match(argv[1], '^(%d+):(%d+)$')
	local db = tonumber(text) or database_after(list, -1)
	if not db then
		return { '', '0' }
	end
	local found = scan_keys(db, cursor or '0', argv[2], argv[3])
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
	local answer = { db and int(db) .. ':' .. found[1] or '', int(#found[2]) }
	for i = 1, #members do
		if not in_shadow(prefix, exact, members[i], times[i]) then
			answer[#answer + 1] = members[i]
		end
	end
	return answer
end
