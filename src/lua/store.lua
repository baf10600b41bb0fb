-- SPDX-License-Identifier: BSD-2-Clause
--
-- store - what schedule and its bulk form share: reading an event from
-- arguments, and writing it.  Needs common, record, app and terms.

local MAX_HEADERS = 32
local MAX_HEADER = 8192		-- bytes of its value
-- Of payload and options together: with the headers that lapsed adds it still
-- fits into the message.max.bytes of the producer.
local MAX_TOGETHER = 1040000

-- The packed field of the topic that was read last: events often share it.
local last_topic, last_field

local function topic_ok(s)
	return #s <= 249 and s ~= '.' and s ~= '..' and string.find(s, '^[%w._-]+$')
end

local function header_ok(name)
	return #name <= 255 and string.find(name, '^[%w._-]+$')
		and string.sub(name, 1, 3) ~= 'ce_' and name ~= 'content-type'
end

-- first:factor:most as the terms of a job; nil when it is none of that.
local function backoff_terms(text, t)
	local first, factor, most = string.match(text, '^(%d+):([%d.]+):(%d+)$')
	first, most = decimal(first, MAX_BACKOFF), decimal(most, MAX_BACKOFF)
	if not first or not most or first > most
		or not string.find(factor, '^%d%d?%d?%d?%.?%d?%d?%d?$') then
		return nil
	end
	factor = math.floor(tonumber(factor) * 1000 + 0.5)
	if factor < 1000 or factor > 1000000 then
		return nil
	end
	t.first, t.factor, t.most = first, factor, most
	return t
end

-- The packed terms of a job; nil, error.
local function job_options(given)
	if not given.ttr then
		return nil, bad('attempts and backoff need a ttr')
	end
	local t = { first = 0, factor = 1000, most = 0, spent = 0 }
	t.ttr = decimal(given.ttr, MAX_TTR)
	if not t.ttr or t.ttr == 0 then
		return nil, bad('ttr must be 1 to ' .. MAX_TTR .. ' ms')
	end
	t.attempts = decimal(given.attempts or '5', MAX_ATTEMPTS)
	if not t.attempts or t.attempts == 0 then
		return nil, bad('attempts must be 1 to ' .. MAX_ATTEMPTS)
	end
	if given.backoff and not backoff_terms(given.backoff, t) then
		return nil, bad('backoff must be <first ms>:<factor>:<most ms>, the factor 1 to 1000, '
			.. 'the others up to ' .. MAX_BACKOFF)
	end
	return job_field(t)
end

-- The packed fields that the options argv[first] to argv[last] ask for, the packed
-- terms of a job, and
-- the options by name; nil and the error when one is wrong.
local function schedule_options(argv, first, last)
	local fields, headers, given, job = {}, 0, {}, false
	if (last - first) % 2 == 0 then
		return nil, bad('an option lacks its value')
	end
	for i = first, last, 2 do
		local name, value = argv[i], argv[i + 1]
		if name == 'ttr' or name == 'attempts' or name == 'backoff' then
			job = true
		elseif name == 'nx' then
			if value ~= '1' then
				return nil, bad('nx must be 1')
			end
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
		elseif name ~= 'if_due_before' then
			return nil, bad_option(name)
		end
		if given[name] then
			return nil, bad_twice(name)
		end
		given[name] = value
	end
	if headers > MAX_HEADERS then
		return nil, bad('headers must be ' .. MAX_HEADERS .. ' at most')
	end
	local terms, wrong = '', nil
	if job then
		terms, wrong = job_options(given)
	end
	return terms and table.concat(fields), terms or wrong, given
end

-- The packed field of a topic; nil when it is none.
local function topic_field(topic)
	if topic ~= last_topic then
		if not topic_ok(topic) then
			return nil
		end
		last_topic, last_field = topic, record_field('t', topic)
	end
	return last_field
end

-- The event in `n` arguments of schedule behind argv[at], checked: its member,
-- due time as a number and as text, its packed fields up to the payload, which
-- is argv[at + 5], and its options by name, if some of them depend on what there
-- is already.  nil, error.
local function store_read(argv, at, n, us)
	if n < 5 then
		return nil, bad('arguments are missing')
	end
	local id, key, payload = argv[at + 1], argv[at + 4], argv[at + 5]
	if #id == 0 or #id > MAX_NAME then
		return nil, bad('id must be 1 to ' .. MAX_NAME .. ' bytes')
	end
	local fields, given = topic_field(argv[at + 3]), nil
	if not fields then
		return nil, bad('topic must be 1 to 249 of A-Za-z0-9._-, and not . or ..')
	end
	if #key > MAX_NAME then
		return nil, bad('key must be at most ' .. MAX_NAME .. ' bytes')
	end
	if #payload > MAX_PAYLOAD then
		return nil, bad('payload must be at most ' .. MAX_PAYLOAD .. ' bytes')
	end
	if key ~= '' then
		fields = fields .. record_field('k', key)
	end
	if n > 5 then
		local more, job, options = schedule_options(argv, at + 6, at + n)
		if not more then
			return nil, job
		end
		if #more + #payload > MAX_TOGETHER then
			return nil, bad('payload and headers must be at most ' .. MAX_TOGETHER
				.. ' bytes together')
		end
		fields = job .. fields .. more
		given = (options.nx or options.if_due_before) and options
	end
	local due, text = when(argv[at + 2], us)
	if not due then
		return nil, bad(text)
	end
	return 's:' .. id, due, text, fields .. 'p', given
end

-- Why an event may not take the place of one that is due at `due`, nil when
-- none is, as its option if_due_before has it; nil when it may.
local function store_too_late(given, due, us)
	local limit, text = when(given.if_due_before, us)
	if not limit then
		return bad('if_due_before: ' .. text)
	end
	if due and tonumber(due) >= limit then
		return redis.error_reply('LAPSE_EXISTS the pending one is due at ' .. int(due)
			.. ', not before ' .. text)
	end
end

-- What stands in front of the fields of a record of that birth.
local function store_head(us)
	return record_pack(us, 0, '')
end
