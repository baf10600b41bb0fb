-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common
--
-- glance - what an instance does now and then besides: add to the counts that
-- all instances share, and look whether some watched keys are still there.
--
-- ARGV: slot, epoch, number of this call; events that were heard, found and
-- inferred since the call before; how many members of the shadow to look at.
-- Answer: of each database that some of them are of: its number, how many keys
-- were looked at, and how many of them are gone.
--
-- `sure` holds the counts `heard`, `found` and `inferred`, and of each slot the
-- last call that was heeded: one that is made again adds nothing.

-- What is due soon may be expired, and what was deleted is still being heard of.
local SOON_MS = 1000

local function add_counts(sure, argv)
	local slot, call = 'slot:' .. argv[1], argv[2] .. ':' .. argv[3]
	if redis.call('HGET', sure, slot) == call then
		return
	end
	local held = redis.call('HMGET', sure, 'heard', 'found', 'inferred')
	local function sum(i)
		return int(tonumber(held[i] or 0) + tonumber(argv[3 + i]))
	end
	-- Refused when out of memory: then nothing is counted.
	redis.pcall('HSET', sure, slot, call, 'heard', sum(1), 'found', sum(2), 'inferred', sum(3))
end

local function look(rows, member)
	local db, key = string.match(member, '^k:(%d+):(.+)$')
	if not db or redis.pcall('SELECT', db).err then
		return
	end
	local there = redis.pcall('EXISTS', key)
	if there ~= 0 and there ~= 1 then
		return
	end
	if not rows[db] then
		rows[db] = { looked = 0, gone = 0 }
		rows[#rows + 1] = db
	end
	rows[db].looked = rows[db].looked + 1
	rows[db].gone = rows[db].gone + 1 - there
end

local function lapse_glance(keys, argv)
	local prefix, rows, answer = keys[1], {}, {}
	redis.call('SELECT', NSDB)
	add_counts(prefix .. ':sure', argv)
	local sample = argv[7] ~= '0'
		and redis.pcall('ZRANDMEMBER', prefix .. ':due', argv[7], 'WITHSCORES') or {}
	local soon = math.floor(now_us() / 1000) + SOON_MS
	for i = 1, #sample, 2 do
		if tonumber(sample[i + 1]) > soon then
			look(rows, sample[i])
		end
	end
	redis.call('SELECT', NSDB)
	for i = 1, #rows do
		answer[#answer + 1] = rows[i]
		answer[#answer + 1] = int(rows[rows[i]].looked)
		answer[#answer + 1] = int(rows[rows[i]].gone)
	end
	return answer
end
