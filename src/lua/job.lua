-- SPDX-License-Identifier: BSD-2-Clause
--
-- job - the life of an event with a time to run.  Needs common,
-- record and terms.
--
--	 schedule            claim                  settle, touch
--	----------> SCHEDULED -----> IN-FLIGHT -------------------> WAITING
--	               ^  |              |                             |  ^ touch
--	               |  | touch        | fail                        |  |
--	               |  +--------------|---------------------------->|--+
--	               +-----------------+------- fail, deadline ------+
--	                  attempt + 1    |                             |
--	                                 |   no attempt is left        |
--	                                 +----------> DYING <----------+
--	                                                | claim, settle
--	     finish, cancel, replace: from any state    v
--	     to GONE                                 DEAD
--
-- Where each stands:
--
--	SCHEDULED	in `due`, its record in `rec`
--	IN-FLIGHT	in a batch, and its record in `rec` as well: so each of
--			these knows at once whether a token is that of the life
--			and attempt that count
--	WAITING		in `wait`, with the deadline of its finish; record in `rec`
--	DYING		in `due`, spent, its record in `rec`; from the claim on in
--			a batch alone, like any other event that is buried
--	DEAD		a dead letter
--	GONE		nowhere
--
-- A settle lets only that life and attempt wait, or be buried, which still is in
-- `rec`.

local MAX_REASON = 1024
local HISTORY = 8		-- attempts that a record remembers

local JOB_MOVES = {
	scheduled = { gone = true, waiting = true, scheduled = true, dying = true },
	['in-flight'] = { gone = true, waiting = true, scheduled = true, dying = true },
	waiting = { gone = true, waiting = true, scheduled = true, dying = true },
	dying = { gone = true },
}

-- Attempts that ended, packed, and where the fields behind them begin.
local function job_history(record)
	local list, at = {}, JOB_HEAD + 1
	while string.byte(record, at) == 97 do	-- a
		local to = at + 2 + struct.unpack('>I2', record, at + 1)
		list[#list + 1] = string.sub(record, at, to)
		at = to + 1
	end
	return list, at
end

-- The record after an attempt that ended in `kind` (`t`: out of time, `f`: it
-- failed, for `reason`).
local function job_next(record, kind, reason, ms)
	local birth, attempt = record_head(record)
	local t, list, at = job_terms(record), job_history(record)
	list[#list + 1] = record_field('a', struct.pack('>I2I8c1', attempt, ms, kind) .. reason)
	t.spent = attempt + 1 >= t.attempts and 1 or 0
	return record_pack(birth, attempt + 1 - t.spent, job_field(t)
		.. table.concat(list, '', math.max(#list - HISTORY + 1, 1)) .. string.sub(record, at))
end

-- The fields of a record for a new life of the job.
local function job_afresh(record)
	if not is_job(record) then
		return string.sub(record, 12)
	end
	local t, _, at = job_terms(record), job_history(record)
	t.spent = 0
	return job_field(t) .. string.sub(record, at)
end

-- How long after its end an attempt is followed by the next, ms: up to a
-- quarter less than the terms say, so that what failed together does not come
-- again together.
local function job_pause(record, member, us)
	local t, _, attempt = job_terms(record), record_head(record)
	local pause = math.min(t.first * (t.factor / 1000) ^ attempt, t.most)
	local h = us % 2147483647
	for i = math.max(1, #member - 31), #member do
		h = (h * 31 + string.byte(member, i)) % 2147483647
	end
	h = (h * 16807) % 2147483647 * 16807 % 2147483647
	return math.floor(pause * (1 - h / 2147483647 / 4))
end

-- The job of that member, wherever it stands; nil when there is none.
local function job_find(prefix, member)
	local record = redis.call('HGET', prefix .. ':rec', member)
	if not record or not is_job(record) then
		return nil
	end
	local job = { prefix = prefix, member = member, record = record }
	local at = redis.call('ZSCORE', prefix .. ':due', member)
	if at then
		job.state = is_spent(record) and 'dying' or 'scheduled'
	else
		at = redis.call('ZSCORE', prefix .. ':wait', member)
		job.state = at and 'waiting' or 'in-flight'
	end
	job.at = tonumber(at or nil)
	return job
end

-- The one place where a job moves, but for the claim and the settle, which
-- move many at once, and for what a pending event meets, be it a job or not: it is
-- cancelled, gets another due time, or a new life takes its place.  `at`: its due time or deadline, ms; `record`: a new one.
-- Adds first and removes last, so that it never is nowhere.
local function job_move(job, to, at, record)
	if not JOB_MOVES[job.state][to] then
		error('a job does not move from ' .. job.state .. ' to ' .. to)
	end
	local due, wait, rec = job.prefix .. ':due', job.prefix .. ':wait', job.prefix .. ':rec'
	if record then
		redis.call('HSET', rec, job.member, record)
	end
	if to == 'scheduled' or to == 'dying' then
		redis.call('ZADD', due, int(at), job.member)
	elseif to == 'waiting' then
		redis.call('ZADD', wait, int(at), job.member)
	end
	if to ~= 'waiting' then
		redis.call('ZREM', wait, job.member)
	end
	if to == 'waiting' or to == 'gone' then
		redis.call('ZREM', due, job.member)
	end
	if to == 'gone' then
		redis.call('HDEL', rec, job.member)
	end
	job.state = to
end

-- Ends the attempt with `record`, which job_next made: the next is due at `at`,
-- or the job is dying.  What it has become.
local function job_retry(job, record, at)
	local to = is_spent(record) and 'dying' or 'scheduled'
	job_move(job, to, at, record)
	job.record = record
	return to
end

-- Jobs that Kafka has taken wait for their finish from now on: `jobs` is a flat
-- list of member, birth, attempt.  One that was finished, cancelled, replaced
-- or given back meanwhile is not in `rec` as it was; one that was touched has
-- its deadline already.
local function jobs_delivered(prefix, jobs, ms)
	local add = {}
	for i = 1, #jobs, 3 do
		local record = redis.call('HGET', prefix .. ':rec', jobs[i])
		if record and is_job(record) and not is_spent(record) then
			local birth, attempt = record_head(record)
			if birth == tonumber(jobs[i + 1]) and attempt == tonumber(jobs[i + 2]) then
				add[#add + 1] = int(ms + job_terms(record).ttr)
				add[#add + 1] = jobs[i]
			end
		end
	end
	return add
end

-- The daemons hear of a deadline before which they look at none.
local function wake_deadline(prefix, at, ms)
	for _, zset in ipairs({ ':wait', ':due' }) do
		local before = redis.call('ZRANGEBYSCORE', prefix .. zset, '(' .. int(ms), at,
			'LIMIT', '0', '1')
		if before[1] then
			return
		end
	end
	redis.call('PUBLISH', prefix .. ':wake', at)
end

-- `add`: what jobs_delivered found.  A deadline that is there already stays.
local function jobs_wait(prefix, add, ms)
	local first
	for i = 1, #add, 2 do
		if not first or tonumber(add[i]) < tonumber(first) then
			first = add[i]
		end
	end
	if not first then
		return
	end
	wake_deadline(prefix, first, ms)
	for i = 1, #add, 4000 do
		redis.call('ZADD', prefix .. ':wait', 'NX', unpack(add, i, math.min(i + 3999, #add)))
	end
end

-- Whether what a batch holds is a job that was finished, cancelled, replaced or
-- given back meanwhile: nobody misses it.
local function job_over(prefix, member, record)
	if not is_job(record) or is_spent(record) then
		return false
	end
	local now = redis.call('HGET', prefix .. ':rec', member)
	return not now or string.sub(now, 1, 11) ~= string.sub(record, 1, 11)
end

-- What is buried with that record is nowhere else, though it may have been
-- touched in flight.
local function job_buried(prefix, member, record)
	local now = is_job(record) and redis.call('HGET', prefix .. ':rec', member)
	if now and string.sub(now, 1, 11) == string.sub(record, 1, 11)
		and not redis.call('ZSCORE', prefix .. ':due', member) then
		redis.call('ZREM', prefix .. ':wait', member)
		redis.call('HDEL', prefix .. ':rec', member)
	end
end

-- Where that very life and attempt of a job is in flight: batch, the name it has
-- there, its envelope, the value in `open`; nil when it is nowhere.  Batches
-- may hold other lives of the same id beside it.
local function job_flight(prefix, member, record)
	local head = string.sub(record, 1, 11)
	local names = { member, 'p:' .. int(record_head(record) or 0) .. string.sub(member, 2) }
	local open = redis.call('HGETALL', prefix .. ':open')
	for i = 1, math.min(#open, 2 * LOOK), 2 do
		local found = redis.call('HMGET', prefix .. ':b:' .. open[i], unpack(names))
		for j = 1, 2 do
			if found[j] and string.sub(found[j], 11, 21) == head then
				return open[i], names[j], found[j], open[i + 1]
			end
		end
	end
	return nil
end

local function stale(text)
	return redis.error_reply('LAPSE_STALE ' .. text)
end

-- The member, birth and attempt that a ce_id names; nil, error.
local function token_parse(text)
	local name, birth, attempt = string.match(text or '', '^(s:.*)@(%d+)%.(%d+)$')
	local member = name and string.gsub(name, '%%(%x%x)', function(hex)
		return string.char(tonumber(hex, 16))
	end)
	if not member or pct(member) ~= name or not decimal(birth, 9007199254740991)
		or not decimal(attempt, 65535) then
		return nil, bad('a ce_id ends with @<birth>.<attempt> and is written as it was received')
	end
	return member, tonumber(birth), tonumber(attempt)
end

-- The job that a consumer's ce_id names, if that is the attempt that counts
-- and was delivered.  One that is SCHEDULED and due may have been: a failover
-- took its claim back.
local function job_of_token(prefix, text, ms)
	local member, birth, attempt = token_parse(text)
	if not member then
		return nil, birth
	end
	local job = job_find(prefix, member)
	if not job or job.state == 'dying' then
		return nil, stale('the job has ended, or was never one')
	end
	local is_birth, is_attempt = record_head(job.record)
	if is_birth ~= birth then
		return nil, stale('another life of that id has taken its place')
	end
	if is_attempt ~= attempt then
		return nil, stale('attempt ' .. attempt .. ' has ended, ' .. is_attempt .. ' is next')
	end
	if job.state == 'scheduled' and job.at > ms then
		return nil, stale('it is not due yet')
	end
	return job
end
