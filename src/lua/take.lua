-- SPDX-License-Identifier: BSD-2-Clause
--
-- take - what cancel, its bulk form and purge share.  Needs common, record, app,
-- terms, job.

local DEAD_TAKE = 1000		-- the latest dead letters among which is looked

-- Under which names a job in flight may stand in a batch.
local function flying_names(member, record)
	return member, 'p:' .. int((record_head(record))) .. string.sub(member, 2)
end

-- Takes a job in flight out of the parked batch that holds it, if it is parked:
-- what is on its way to Kafka can't be stopped.  `found` is what in_flights
-- gave.  Its state (in-flight or parked) and due time, ms; the latter is 0 when
-- it was not found.
local function job_unpark(job, found)
	for _, name in ipairs({ flying_names(job.member, job.record) }) do
		local hit, before = found[name], nil
		while hit do
			local due, _, head = envelope_open(hit[2])
			if due and head == string.sub(job.record, 1, 11) then
				if not string.find(hit[3], '^%d+ %d+ %d+ ') then
					return 'in-flight', due
				end
				leave_batch(job.prefix, hit[1], name)
				if before then
					before.other = hit.other
				else
					found[name] = hit.other
				end
				return 'parked', due
			end
			before, hit = hit, hit.other
		end
	end
	return 'in-flight', 0
end

-- The answer for what is pending or waiting; nil, and the job if it is one, for
-- what may be in flight or dead.  A record is read only when it matters: it may
-- be large, and what is dying is due (unless a clock stepped back: it is called
-- scheduled then).
local function take_standing(prefix, member, ms)
	local due = redis.call('ZSCORE', prefix .. ':due', member)
	local job = not (due and tonumber(due) > ms) and job_find(prefix, member)
	if job and job.state ~= 'in-flight' then
		local was = job.state
		job_move(job, 'gone')
		return { 'cancelled', int(job.at), was }
	elseif due then
		redis.call('ZREM', prefix .. ':due', member)
		redis.call('HDEL', prefix .. ':rec', member)
		return { 'cancelled', int(due), 'scheduled' }
	end
	return nil, job or nil
end

-- The latest dead letter of each of `members`, among the latest ones: member ->
-- { time of death, ce_id }.
local function take_dead(prefix, members)
	local heads, found = {}, {}
	local dead = redis.call('ZRANGE', prefix .. ':dead', -DEAD_TAKE, -1, 'WITHSCORES')
	for _, member in ipairs(#dead > 0 and members or {}) do
		heads[pct(member)] = member
	end
	for i = 1, #dead, 2 do
		local member = heads[string.match(dead[i], '^(.*)@') or '']
		if member then
			found[member] = { int(dead[i + 1]), dead[i] }
		end
	end
	return found
end

-- The answers of cancel for those of `later` (place in the answers, member, job
-- if it is one), which are neither pending nor waiting.
local function take_flying(prefix, later, answers)
	local names, missing = {}, {}
	for _, l in ipairs(later) do
		names[#names + 1] = l.member
		if l.job then
			local _, other = flying_names(l.member, l.job.record)
			names[#names + 1] = other
		end
	end
	local found, unsure_ = in_flights(prefix, names)
	for _, l in ipairs(later) do
		if l.job and redis.call('HEXISTS', prefix .. ':rec', l.member) == 1 then
			local was, at = job_unpark(l.job, found)
			job_move(l.job, 'gone')
			answers[l.place] = { 'cancelled', int(at), was }
		elseif found[l.member] then
			answers[l.place] = { 'in-flight' }
		elseif unsure_ then
			answers[l.place] = unsure_
		else
			missing[#missing + 1] = l
		end
	end
	return missing
end

-- The answers of cancel for the ids.
local function take_back(prefix, ids)
	local answers, later, members = {}, {}, {}
	local ms = math.floor(now_us() / 1000)
	for i, id in ipairs(ids) do
		local job
		if not size_ok(id, 1, MAX_NAME) then
			answers[i] = bad('id must be 1 to ' .. MAX_NAME .. ' bytes')
		else
			answers[i], job = take_standing(prefix, 's:' .. id, ms)
		end
		if not answers[i] then
			later[#later + 1] = { place = i, member = 's:' .. id, job = job }
		end
	end
	if #later == 0 then
		return answers
	end
	later = take_flying(prefix, later, answers)
	for i, l in ipairs(later) do
		members[i] = l.member
	end
	local dead = take_dead(prefix, members)
	for _, l in ipairs(later) do
		local letter = dead[l.member]
		answers[l.place] = letter and { 'dead', letter[1], letter[2] } or { 'not-found' }
	end
	return answers
end
