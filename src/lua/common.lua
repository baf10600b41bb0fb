-- SPDX-License-Identifier: BSD-2-Clause
--
-- common - what every script needs: the clock, argument checks, names.
--
-- Put in front of a script's own text when it is loaded.  NSDB, the database
-- of the keys below the prefix, is written in front of all of it.

local MAX_WHEN = 253402300799999	-- the last millisecond of the year 9999

-- Redis' own clock, microseconds.  Ask once per run: on Redis 7.0 it moves
-- while a script runs.
local function now_us()
	local t = redis.call('TIME')
	return t[1] * 1000000 + t[2]
end

-- A number as a plain decimal; tostring() turns to exponents at 1e14.
local function int(n)
	return string.format('%.0f', n)
end

local function bad(text)
	return redis.error_reply('LAPSE_BADARG ' .. text)
end

-- The number that `s` spells in 1 to 16 plain digits, at most `max`; else nil.
local function decimal(s, max)
	if type(s) ~= 'string' or #s == 0 or #s > 16 or string.find(s, '%D') then
		return nil
	end
	local n = tonumber(s)
	if n > max then
		return nil
	end
	return n
end

-- The due time, ms, of `+ms` or `@ms`, never before now.  nil, text if it is
-- neither or lies beyond the year 9999.
local function when(s, us)
	local now = math.floor(us / 1000)
	local n = decimal(string.sub(s or '', 2), 9999999999999999)
	local sign = string.sub(s or '', 1, 1)
	if not n or (sign ~= '+' and sign ~= '@') then
		return nil, 'time must be +<ms> or @<ms since 1970>, plain decimals'
	end
	if sign == '+' then
		n = n + now
	end
	if n > MAX_WHEN then
		return nil, 'time lies beyond the year 9999'
	end
	return n > now and n or now
end

local function pct(s)
	return (string.gsub(s, '[^!-$&-~]', function(c)
		return string.format('%%%02X', string.byte(c))
	end))
end

-- birth and attempt are numbers or decimal strings.
local function ce_id(member, birth, attempt)
	if string.sub(member, 1, 2) == 'e:' then
		member = 'k:' .. string.match(member, '^e:%d*:(.*)$')
	end
	return pct(member) .. '@' .. int(tonumber(birth)) .. '.' .. int(tonumber(attempt))
end

-- Where `member` is claimed or parked: `<slot>:<seq>`, its envelope, and the
-- value in `open`; nil if it is in no batch.  Looks at 1,000 batches at most.
local function in_flight(prefix, member)
	local open = redis.call('HGETALL', prefix .. ':open')
	for i = 1, math.min(#open, 2000), 2 do
		local envelope = redis.call('HGET', prefix .. ':b:' .. open[i], member)
		if envelope then
			return open[i], envelope, open[i + 1]
		end
	end
	return nil
end
