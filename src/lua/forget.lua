-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record batch terms job
--
-- forget - acknowledged lives whose batch is gone (a failover lost the
-- claim) are removed from where they stand now, by their token.  A job that
-- stands as it was claimed waits for its finish instead.
--
-- ARGV: slot, epoch, nonce, then (member, birth, due, attempt of a job or `-`)
-- of each.
-- Answer: how many lives were still there.  A newer life of the same id or
-- key has another birth and stays.

-- Whether the claim of that job had been lost.
local function job_again(prefix, member, birth, attempt, ms)
	local add = jobs_delivered(prefix, { member, birth, attempt }, ms)
	if #add == 0 then
		return false
	end
	local was_due = redis.call('ZSCORE', prefix .. ':due', member)
	jobs_wait(prefix, add, ms)
	redis.call('ZREM', prefix .. ':due', member)
	return was_due
end

-- The same for what is no job.
local function forget_one(prefix, member, birth, due)
	local record = redis.call('HGET', prefix .. ':rec', member)
	local same
	if record then
		same = record_head(record) == birth
	else
		same = redis.call('ZSCORE', prefix .. ':due', member) == due
	end
	if same then
		redis.call('ZREM', prefix .. ':due', member)
		redis.call('HDEL', prefix .. ':rec', member)
	end
	return same
end
local function lapse_forget(keys, argv)
	local prefix = keys[1]
	redis.call('SELECT', NSDB)
	local last, fenced = fence(prefix, argv[1], argv[2], argv[3])
	if not last then
		return fenced
	end
	local forgotten, ms = 0, math.floor(now_us() / 1000)
	for i = 4, #argv, 4 do
		local member, birth, due, attempt = argv[i], tonumber(argv[i + 1]), argv[i + 2], argv[i + 3]
		local was
		if attempt == '-' then
			was = forget_one(prefix, member, birth, due)
		else
			was = job_again(prefix, canonical(member), birth, attempt, ms)
		end
		forgotten = forgotten + (was and 1 or 0)
	end
	return { int(forgotten) }
end
