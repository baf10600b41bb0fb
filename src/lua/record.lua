-- SPDX-License-Identifier: BSD-2-Clause
--
-- record - the packed form of an event (docs/protocol.md, "Record").

local function record_field(tag, value)
	return struct.pack('>c1I2', tag, #value) .. value
end

-- `fields` are packed (record_field), one behind the other in one string, and
-- the last may be the payload: its tag and bytes alone.
local function record_pack(birth, attempt, fields)
	return struct.pack('>I1I8I2', 1, birth, attempt) .. fields
end

-- Birth and attempt alone, cheaply; nil when there is no readable head.
local function record_head(record)
	if not record or #record < 11 or string.byte(record) ~= 1 then
		return nil
	end
	local _, birth, attempt = struct.unpack('>I1I8I2', record)
	return birth, attempt
end

-- How a life ended that was put aside, as the certainty of its envelope: the
-- first of all fields; nil when it is not told.
local function record_ended(record)
	return string.byte(record, 12) == 101 and string.sub(record, 15, 15) or nil	-- e
end

local function record_end(record, certainty)
	return string.sub(record, 1, 11) .. record_field('e', certainty)
		.. string.sub(record, record_ended(record) and 16 or 12)
end

-- What is wrong with a field, given those before it; nil when nothing is.
local function record_wrong(tag, value, given)
	if not string.find('tkcyhjae', tag, 1, true) then
		return 'unknown field'
	end
	given[tag] = (given[tag] or 0) + 1
	if tag == 'h' then
		return (given.h > 32 and 'too many headers')
			or (not string.find(value, '^%Z+%z') and 'header without a name') or nil
	end
	if tag == 'a' then
		return (given.a > 8 and 'too many attempts')
			or (#value < 11 and 'attempt that is cut') or nil
	end
	if tag == 'e' and not string.find(value, '^[hfi]$') then
		return 'end of an unknown kind'
	end
	if tag == 'j' and #value ~= 19 then
		return 'terms of a job of another length'
	end
	return given[tag] > 1 and 'field twice' or nil
end

-- A flat list of tag, value, tag, value ...; nil, text if unreadable.
local function record_fields(record)
	local fields, given, at = {}, {}, 12
	if not record_head(record) then
		return nil, 'no readable head'
	end
	while at <= #record do
		local tag = string.sub(record, at, at)
		local from, to = at + 1, #record
		if tag ~= 'p' then
			if at + 2 > #record then
				return nil, 'cut field'
			end
			from, to = at + 3, at + 2 + struct.unpack('>I2', record, at + 1)
			if to > #record then
				return nil, 'field longer than the record'
			end
			local wrong = record_wrong(tag, string.sub(record, from, to), given)
			if wrong then
				return nil, wrong
			end
		end
		fields[#fields + 1] = tag
		fields[#fields + 1] = string.sub(record, from, to)
		at = to + 1
	end
	return fields
end

-- Due ms, certainty and record of an envelope; nil when unreadable.
local function envelope_open(envelope)
	if not envelope or #envelope < 10 or string.byte(envelope) ~= 1 then
		return nil
	end
	local _, due, certainty = struct.unpack('>I1I8c1', envelope)
	return due, certainty, string.sub(envelope, 11)
end

-- Member, record, reason, due ms and certainty of an obituary; nil when unreadable.
local function obituary_open(obituary)
	if #obituary < 5 or string.byte(obituary) ~= 1 then
		return nil
	end
	local at = 4 + struct.unpack('>I2', obituary, 2)
	if at + 1 > #obituary then
		return nil
	end
	local from = at + 2
	local to = from + struct.unpack('>I2', obituary, at) - 1
	local due, certainty, record = envelope_open(string.sub(obituary, to + 1))
	return record and string.sub(obituary, from, to), record, string.sub(obituary, 4, at - 1),
		due, certainty
end
