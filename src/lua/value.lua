-- SPDX-License-Identifier: BSD-2-Clause
--
-- value - the value of a watched key, as it goes into an event: a string as it
-- is, anything else as JSON (docs/events.md, "Copied values").

-- Elements read at once of what can be read in pieces.
local PIECE = 100
local BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'

local function base64(s)
	return (string.gsub(s, '..?.?', function(three)
		local a, b, c = string.byte(three, 1, 3)
		local n = a * 65536 + (b or 0) * 256 + (c or 0)
		local out = ''
		for shift = 18, 18 - 6 * #three, -6 do
			local at = math.floor(n / 2 ^ shift) % 64 + 1
			out = out .. string.sub(BASE64, at, at)
		end
		return out .. string.rep('=', 3 - #three)
	end))
end

-- How many bytes the UTF-8 character has whose first two bytes these are, by
-- the table of the Unicode standard (3-7); nil if there is none.
local function utf8_length(a, b)
	if a < 194 or a > 244 or not b or b > 191 then
		return nil
	end
	local least = (a == 224 and 160) or (a == 240 and 144) or 128
	local most = (a == 237 and 159) or (a == 244 and 143) or 191
	if b < least or b > most then
		return nil
	end
	return (a < 224 and 2) or (a < 240 and 3) or 4
end

local function is_utf8(s)
	local at = string.find(s, '[\128-\255]')
	while at do
		local n = utf8_length(string.byte(s, at, at + 1))
		if not n or at + n - 1 > #s
			or string.find(string.sub(s, at + 1, at + n - 1), '[^\128-\191]') then
			return false
		end
		at = string.find(s, '[\128-\255]', at + n)
	end
	return true
end

local function escape(c)
	if c == '"' or c == '\\' then
		return '\\' .. c
	end
	return string.format('\\u%04x', string.byte(c))
end

local function json_text(s)
	return is_utf8(s) and '"' .. string.gsub(s, '[%c%z"\\]', escape) .. '"' or nil
end

local function json_item(s)
	return json_text(s) or '{"base64":"' .. base64(s) .. '"}'
end

-- Adds to what is written so far; false when it is too long by now.
local function put(out, text)
	out[#out + 1] = text
	out.size = out.size + #text + 1
	return out.size < out.max
end

local function put_list(out, list)
	for i = 1, #list do
		if not put(out, json_item(list[i])) then
			return false
		end
	end
	return true
end

-- Name, value, name, value ... as an object, or as pairs when a name is no text.
local function json_pairs(list)
	local as_object, as_pairs = {}, {}
	for i = 1, #list, 2 do
		local name, value = json_text(list[i]), json_item(list[i + 1])
		if name and as_object then
			as_object[#as_object + 1] = name .. ':' .. value
		else
			as_object = nil
		end
		as_pairs[#as_pairs + 1] = '[' .. json_item(list[i]) .. ',' .. value .. ']'
	end
	return as_object and '{' .. table.concat(as_object, ',') .. '}'
		or '[' .. table.concat(as_pairs, ',') .. ']'
end

-- Member, score, member, score ...
local function put_scores(out, list)
	for i = 1, #list, 2 do
		local score = list[i + 1]
		if not string.find(score, '%d') then	-- inf, -inf
			score = '"' .. score .. '"'
		end
		if not put(out, '[' .. json_item(list[i]) .. ',' .. score .. ']') then
			return false
		end
	end
	return true
end

local function put_entries(out, list)
	for i = 1, #list do
		local fields = json_pairs(list[i][2])
		if not put(out, '{"id":"' .. list[i][1] .. '","fields":' .. fields .. '}') then
			return false
		end
	end
	return true
end

-- Each puts what it has read, and gives false when that is too much.  `n`
-- elements are there, none of which takes less than three bytes.
local readers = {
	list = function(out, key, n)
		for i = 0, n - 1, PIECE do
			if not put_list(out, redis.call('LRANGE', key, i, i + PIECE - 1)) then
				return false
			end
		end
		return true
	end,
	set = function(out, key)
		return put_list(out, redis.call('SMEMBERS', key))
	end,
	zset = function(out, key, n)
		for i = 0, n - 1, PIECE do
			local piece = redis.call('ZRANGE', key, i, i + PIECE - 1, 'WITHSCORES')
			if not put_scores(out, piece) then
				return false
			end
		end
		return true
	end,
	stream = function(out, key)
		local from = '-'
		repeat
			local piece = redis.call('XRANGE', key, from, '+', 'COUNT', PIECE)
			if not put_entries(out, piece) then
				return false
			end
			from = #piece == PIECE and '(' .. piece[PIECE][1]
		until not from
		return true
	end,
}

local counters = { list = 'LLEN', set = 'SCARD', zset = 'ZCARD', stream = 'XLEN', hash = 'HLEN' }

-- The value and its content type (nil: any), or nil and why there is none.
local function value_copy(key, max)
	local kind = redis.call('TYPE', key).ok
	if kind == 'string' then
		if redis.call('STRLEN', key) > max then
			return nil, 'too-large'
		end
		return redis.call('GET', key)
	end
	if not counters[kind] then
		return nil, 'unsupported-type'
	end
	local n = redis.call(counters[kind], key)
	local out = { size = 1, max = max + 1 }
	if 3 * n > max then
		return nil, 'too-large'
	end
	if kind == 'hash' then
		local text = json_pairs(redis.call('HGETALL', key))
		if #text > max then
			return nil, 'too-large'
		end
		return text, 'application/json'
	end
	if not readers[kind](out, key, n) then
		return nil, 'too-large'
	end
	return '[' .. table.concat(out, ',') .. ']', 'application/json'
end
