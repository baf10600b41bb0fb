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

-- A number, or a string that spells one, as a plain decimal: tostring() turns
-- to exponents at 1e14.  In two halves, since %d is a C long and %.0f is slow.
local function int(n)
	n = n + 0
	if n < 1000000 then
		return string.format('%d', n)
	end
	local low = n % 1000000
	return string.format('%d%06d', (n - low) / 1000000, low)
end

local function bad(text)
	return redis.error_reply('LAPSE_BADARG ' .. text)
end

-- The number that `s` spells in 1 to 16 plain digits, at most `max`; else nil.
local function decimal(s, max)
	if not s or #s > 16 or not string.find(s, '^%d+$') then
		return nil
	end
	local n = tonumber(s)
	return n <= max and n or nil
end

-- The due time of `+ms` or `@ms`, never before now: as a number of ms and as
-- its text.  nil, text if it is neither or lies beyond the year 9999.
local function when(s, us)
	local sign, text = string.match(s or '', '^([+@])(%d+)$')
	if not sign or #text > 16 then
		return nil, 'time must be +<ms> or @<ms since 1970>, plain decimals'
	end
	local n, now = text + 0, (us - us % 1000) / 1000
	if sign == '+' then
		n = n + now
	end
	if n > MAX_WHEN then
		return nil, 'time lies beyond the year 9999'
	end
	if n <= now then
		return now, int(now)
	end
	return n, sign == '@' and string.byte(text) ~= 48 and text or int(n)
end

local function pct(s)
	if string.find(s, '^[&-~!-$]*$') then
		return s
	end
	return (string.gsub(s, '[^!-$&-~]', function(c)
		return string.format('%%%02X', string.byte(c))
	end))
end

-- birth and attempt are numbers or decimal strings.
local function ce_id(member, birth, attempt)
	if string.byte(member) == 101 then	-- e
		member = 'k:' .. string.match(member, '^e:%d*:(.*)$')
	end
	return pct(member) .. '@' .. int(birth) .. '.' .. int(attempt)
end

local LOOK = 10000	-- batches that one script looks into, some 10 ms
local LOOK_MANY = 100000	-- times the members that it looks for

local function say_unsure(batches)
	return redis.error_reply('LAPSE_UNSURE more than ' .. batches
		.. ' batches are open, and it is in none of those looked into')
end

-- Where `member` is claimed or parked: `<slot>:<seq>`, its envelope, and the
-- value in `open`; nil if it is in no batch; nil and the error to answer when
-- there are more than can be looked into.
local function in_flight(prefix, member)
	local open = redis.call('HGETALL', prefix .. ':open')
	for i = 1, math.min(#open, 2 * LOOK), 2 do
		local envelope = redis.call('HGET', prefix .. ':b:' .. open[i], member)
		if envelope then
			return open[i], envelope, open[i + 1]
		end
	end
	return nil, #open > 2 * LOOK and say_unsure(LOOK) or nil
end

-- The same of many members at once: each that is there -> { batch, the envelope
-- up to the head of its record, the value in `open`, other = the same of another
-- batch with that name, or nil }; and the error to answer for the others when
-- there are more batches than can be looked into.
local function in_flights(prefix, members)
	local found, n = {}, #members
	local open = n > 0 and redis.call('HGETALL', prefix .. ':open') or {}
	local most = math.min(LOOK, math.floor(LOOK_MANY / n))
	for i = 1, math.min(#open, 2 * most), 2 do
		local envelopes = redis.call('HMGET', prefix .. ':b:' .. open[i], unpack(members))
		for j = 1, n do
			local other = found[members[j]]
			if envelopes[j] and not (other and other[1] == open[i]) then
				found[members[j]] = { open[i], string.sub(envelopes[j], 1, 21), open[i + 1],
					other = other }
			end
		end
	end
	return found, #open > 2 * most and say_unsure(most) or nil
end
