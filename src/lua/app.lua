-- SPDX-License-Identifier: BSD-2-Clause
--
-- app - what the scripts for applications share: the rules for their
-- arguments, and the wake message.  Needs common.

local MAX_NAME = 1024		-- bytes of an id, a watched key, a Kafka key
local MAX_PAYLOAD = 1000000

local function size_ok(s, least, most)
	return s ~= nil and #s >= least and #s <= most
end

-- Whether it ends in the one shard that there is; any other would name keys
-- that no daemon reads.
local function prefix_ok(prefix)
	return #prefix > 4 and string.sub(prefix, -4) == ':{0}'
end

-- The error for KEYS and the number of arguments; nil when they are right.
-- `fixed` arguments come before the options.
local function bad_call(keys, argv, nkeys, fixed)
	if #keys ~= nkeys then
		return bad('number of keys must be ' .. nkeys)
	end
	if not prefix_ok(keys[1]) then
		return bad('prefix must be <namespace>:{0}, as in lapse:{0}')
	end
	if #argv < fixed then
		return bad('arguments are missing')
	end
	if (#argv - fixed) % 2 == 1 then
		return bad('an option lacks its value')
	end
	return nil
end

local function bad_option(name)
	return bad('unknown option ' .. pct(string.sub(name, 1, 64)))
end

-- As bad_call, for a script with one key and no options.
local function bad_plain_call(keys, argv, fixed)
	local wrong = bad_call(keys, argv, 1, fixed)
	if not wrong and #argv > fixed then
		wrong = bad_option(argv[fixed + 1])
	end
	return wrong
end

local function bad_twice(name)
	return bad('option ' .. name .. ' is given twice')
end

-- Keys below the namespace (`lapse:{`) are ours, and none of them expires.
local function watched_ok(prefix, key)
	local ours = string.match(prefix, '^[^{]+{')
	return size_ok(key, 1, MAX_NAME) and string.sub(key, 1, #ours) ~= ours
end

-- A number of the database that this server has; nil, error otherwise.
-- Leaves NSDB selected.
local function watched_db(s)
	local db = decimal(s, 2147483647)
	if not db then
		return nil, bad('db must be a plain decimal')
	end
	if db ~= NSDB then
		local answer = redis.pcall('SELECT', db)
		redis.call('SELECT', NSDB)
		if answer.err then
			return nil, bad('db is none of this server')
		end
	end
	return db
end

-- Redis' clock, microseconds, as a number and as its text.
local function clock()
	local t = redis.call('TIME')
	local text = t[1] .. string.sub('00000' .. t[2], -6)
	return tonumber(text), text
end

-- The answer for a member that is not in the shadow.
local function not_pending(prefix, member)
	local flies, unsure = in_flight(prefix, member)
	if flies then
		return { 'in-flight' }
	end
	return unsure or { 'not-found' }
end

-- The error for a member that must be neither pending, in flight nor waiting.
local function must_be_new(prefix, member)
	local flies, unsure = in_flight(prefix, member)
	if flies or redis.call('ZSCORE', prefix .. ':due', member)
		or redis.call('HEXISTS', prefix .. ':rec', member) == 1 then
		return redis.error_reply('LAPSE_EXISTS the id is pending, in flight or waiting')
	end
	return unsure
end

-- Tells the daemons of a due time before which they wait for nothing.  Both
-- times are texts.  What is overdue does not count: it may be held back, to
-- be looked at later.
--
-- To be called before the first write: the message leaves after the script
-- either way, and one that an ACL refuses must refuse the whole call.
local function wake(prefix, due, now_us_)
	local before = redis.call('ZRANGEBYSCORE', prefix .. ':due',
		'(' .. string.sub(now_us_, 1, -4), due, 'LIMIT', '0', '1')
	if not before[1] then
		redis.call('PUBLISH', prefix .. ':wake', due)
	end
end
