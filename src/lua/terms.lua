-- SPDX-License-Identifier: BSD-2-Clause
--
-- terms - what a record says of the life of a job (job.lua), and what schedule
-- needs of it.  Needs common and record.  Apart from job.lua since every run of a
-- script makes all the functions in front of it anew.

local JOB_TAG = 106		-- j
local JOB_HEAD = 33		-- bytes of a record up to the end of that field
local MAX_TTR = 604800000	-- a week
local MAX_ATTEMPTS = 1000
local MAX_BACKOFF = 604800000

-- The field that makes a record one of a job; it comes first of all fields.
local function job_field(t)
	return struct.pack('>c1I2I4I2I4I4I4I1', 'j', 19, t.ttr, t.attempts, t.first, t.factor,
		t.most, t.spent)
end

local function is_job(record)
	return string.byte(record, 12) == JOB_TAG and #record >= JOB_HEAD
end

local function is_spent(record)
	return string.byte(record, JOB_HEAD) == 1
end

local function job_terms(record)
	local t, _ = {}, nil
	_, _, t.ttr, t.attempts, t.first, t.factor, t.most, t.spent =
		struct.unpack('>c1I2I4I2I4I4I4I1', record, 12)
	return t
end

local function leave_batch(prefix, batch, member)
	redis.call('HDEL', prefix .. ':b:' .. batch, member)
	if redis.call('EXISTS', prefix .. ':b:' .. batch) == 0 then
		redis.call('HDEL', prefix .. ':open', batch)
	end
end

-- The member's job, in `wait` or in flight until now, has a new life.  Should
-- the old one be parked, it will not be sent any more.
local function job_replaced(prefix, member)
	if redis.call('ZREM', prefix .. ':wait', member) == 1 then
		return
	end
	for _ = 1, 100 do
		local batch, envelope, open = in_flight(prefix, member)
		local _, _, held = envelope_open(envelope)
		if not batch or not is_job(held or '') or not string.find(open, '^%d+ %d+ %d+ ') then
			return
		end
		leave_batch(prefix, batch, member)
	end
end
