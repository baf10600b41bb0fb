-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app
--
-- schedule - store an event, in place of a pending one of the same id.
--
-- KEYS: prefix.
-- ARGV: id, time, topic, key (empty: none), payload, then options: `nx 1`,
-- `type`, `content-type`, `header.<name>`.
-- Answer: `scheduled` or `replaced`, due ms, ce_id.
--
-- ZADD is the first write: when Redis is out of memory it is refused, and
-- with it the call; what follows is then refused no more.

local MAX_HEADERS = 32
local MAX_HEADER = 8192		-- bytes of its value
-- Of payload and options together: with the headers that lapsed adds it still
-- fits into the message.max.bytes of the producer.
local MAX_TOGETHER = 1040000

local function topic_ok(s)
	return #s <= 249 and s ~= '.' and s ~= '..' and string.find(s, '^[%w._-]+$')
end

local function header_ok(name)
	return #name <= 255 and string.find(name, '^[%w._-]+$')
		and string.sub(name, 1, 3) ~= 'ce_' and name ~= 'content-type'
end

-- The packed fields that the options ask for, and whether `nx` was; nil and
-- the error when one is wrong.
local function schedule_options(argv)
	local fields, nx, headers, given = {}, false, 0, {}
	for i = 6, #argv, 2 do
		local name, value = argv[i], argv[i + 1]
		if name == 'nx' then
			if value ~= '1' then
				return nil, bad('nx must be 1')
			end
			nx = true
		elseif name == 'type' or name == 'content-type' then
			if not size_ok(value, 1, 255) or string.find(value, '[^ -~]') then
				return nil, bad(name .. ' must be 1 to 255 printable ASCII bytes')
			end
			fields[#fields + 1] = record_field(name == 'type' and 'y' or 'c', value)
		elseif string.sub(name, 1, 7) == 'header.' then
			local header = string.sub(name, 8)
			if not header_ok(header) then
				return nil, bad('header name must be 1 to 255 of A-Za-z0-9._-, not ce_* or content-type')
			end
			if #value > MAX_HEADER then
				return nil, bad('header value must be at most ' .. MAX_HEADER .. ' bytes')
			end
			headers = headers + 1
			fields[#fields + 1] = record_field('h', header .. '\0' .. value)
		else
			return nil, bad_option(name)
		end
		if given[name] then
			return nil, bad_twice(name)
		end
		given[name] = true
	end
	if headers > MAX_HEADERS then
		return nil, bad('headers must be ' .. MAX_HEADERS .. ' at most')
	end
	return table.concat(fields), nx
end

-- The error for the arguments before the options; nil when they are right.
local function schedule_wrong(id, topic, key, payload)
	if #id == 0 or #id > MAX_NAME then
		return bad('id must be 1 to ' .. MAX_NAME .. ' bytes')
	end
	if not topic_ok(topic) then
		return bad('topic must be 1 to 249 of A-Za-z0-9._-, and not . or ..')
	end
	if #key > MAX_NAME then
		return bad('key must be at most ' .. MAX_NAME .. ' bytes')
	end
	if #payload > MAX_PAYLOAD then
		return bad('payload must be at most ' .. MAX_PAYLOAD .. ' bytes')
	end
end

local function lapse_schedule(keys, argv)
	local prefix, id, topic, key, payload = keys[1], argv[1], argv[3], argv[4], argv[5]
	local wrong = bad_call(keys, argv, 1, 5) or schedule_wrong(id, topic, key, payload)
	if wrong then
		return wrong
	end
	local more, nx = '', false
	if #argv > 5 then
		more, nx = schedule_options(argv)
		if not more then
			return nx
		end
	end
	if #more + #payload > MAX_TOGETHER then
		return bad('payload and headers must be at most ' .. MAX_TOGETHER .. ' bytes together')
	end
	redis.call('SELECT', NSDB)
	local us, now = clock()
	local due, text = when(argv[2], us)
	if not due then
		return bad(text)
	end
	local member, shadow = 's:' .. id, prefix .. ':due'
	wrong = nx and must_be_new(prefix, member)
	if wrong then
		return wrong
	end

	wake(prefix, text, now)
	local is_new = redis.call('ZADD', shadow, text, member) == 1
	if not is_new then
		local old = record_head(redis.call('HGET', prefix .. ':rec', member))
		us = math.max(us, (old or 0) + 1)
		now = int(us)
	end
	redis.call('HSET', prefix .. ':rec', member, record_pack(us, 0, struct.pack('>c1I2', 't', #topic)
		.. topic .. (key ~= '' and record_field('k', key) or '') .. more .. 'p' .. payload))
	return { is_new and 'scheduled' or 'replaced', text, pct(member) .. '@' .. now .. '.0' }
end
