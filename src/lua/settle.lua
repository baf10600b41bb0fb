-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record batch terms job
--
-- settle - the end of a batch: its entries are forgotten, but for those that
-- wait for their finish, are buried or parked.
--
-- ARGV: slot, epoch, nonce, seq, number of burials, (member, ce_id, reason)
-- of each, how many dead letters to keep (0: all; the oldest go, after a
-- burial), number of jobs that were delivered, (member, birth, attempt) of each,
-- then any number of parked groups: seq of a batch of this slot
-- (new, or one parked for the same topic), topic, retry ms, count, members.  A
-- group without a topic is what a stopping instance has not got delivered: it
-- stays open under its new seq, to be adopted.
-- Answer: `settled`, or `gone` when the batch is not there (settled before,
-- or lost by a failover; the daemon then asks for `forget`).  After a burial
-- also how many dead letters there are, how many were dropped, and the ce_id
-- of the first of them.

local MOST_DROPPED = 1000	-- in one run

-- The writes that a settle will make, with every value read beforehand.
local function plan(prefix, name, argv)
	local batch = prefix .. ':b:' .. name
	local bury, jobs, park, i = {}, {}, {}, 6
	for _ = 1, tonumber(argv[5]) do
		local envelope = redis.call('HGET', batch, argv[i])
		local member, record = canonical(argv[i]), string.sub(envelope or '', 11)
		if envelope and not job_over(prefix, member, record) then
			bury[#bury + 1] = { argv[i + 1], struct.pack('>I1I2', 1, #argv[i + 2]) .. argv[i + 2]
				.. struct.pack('>I2', #member) .. member .. envelope, member, record }
		end
		i = i + 3
	end
	local keep = tonumber(argv[i])
	i = i + 1
	for j = i + 1, i + 3 * tonumber(argv[i] or 0), 3 do
		jobs[#jobs + 1] = canonical(argv[j])
		jobs[#jobs + 1] = argv[j + 1]
		jobs[#jobs + 1] = argv[j + 2]
	end
	i = i + 1 + #jobs
	while argv[i] do
		local group = { seq = argv[i], topic = argv[i + 1], retry = argv[i + 2], pairs = {} }
		local n = tonumber(argv[i + 3])
		for j = i + 4, i + 3 + n do
			local envelope = redis.call('HGET', batch, argv[j])
			if envelope and not job_over(prefix, canonical(argv[j]), string.sub(envelope, 11)) then
				group.pairs[#group.pairs + 1] = argv[j]
				group.pairs[#group.pairs + 1] = envelope
			end
		end
		park[#park + 1] = group
		i = i + 4 + n
	end
	return bury, park, keep, jobs
end

-- What to answer of the dead letters, of which `keep` may stay.
local function trim_dead(prefix, keep)
	local dead, why = prefix .. ':dead', prefix .. ':why'
	local n = redis.call('ZCARD', dead)
	local most = keep > 0 and math.min(n - keep, MOST_DROPPED) or 0
	local names = most > 0 and redis.call('ZRANGE', dead, 0, int(most - 1)) or {}
	in_pieces('HDEL', why, names)
	in_pieces('ZREM', dead, names)
	return { 'settled', int(n - #names), int(#names), names[1] }
end

-- The parked batch may hold an earlier life of the same id or key, which must
-- not be overwritten: the later one goes under a name of its own.
local function move_beside(batch, pairs_)
	for i = 1, #pairs_, 2 do
		if redis.call('HEXISTS', batch, pairs_[i]) == 1 then
			local _, _, record = envelope_open(pairs_[i + 1])
			pairs_[i] = alias(pairs_[i], record_head(record) or 0)
		end
	end
end

local function lapse_settle(keys, argv)
	local prefix, slot, epoch, nonce = keys[1], argv[1], argv[2], argv[3]
	local name = slot .. ':' .. argv[4]
	redis.call('SELECT', NSDB)
	local last, fenced = fence(prefix, slot, epoch, nonce)
	if not last then
		return fenced
	end
	local open = redis.call('HGET', prefix .. ':open', name)
	if redis.call('EXISTS', prefix .. ':b:' .. name) == 0 then
		redis.call('HDEL', prefix .. ':open', name)
		return { 'gone' }
	end
	local ms = math.floor(now_us() / 1000)
	local bury, park, keep, jobs = plan(prefix, name, argv)
	local wait = #jobs > 0 and jobs_delivered(prefix, jobs, ms) or jobs
	if #bury > 0 or #park > 0 or #wait > 0 then
		first_writes(prefix, name)
		redis.call('UNLINK', prefix .. ':b:')
	end
	jobs_wait(prefix, wait, ms)
	ms = int(ms)
	for _, b in ipairs(bury) do
		redis.call('HSET', prefix .. ':why', b[1], b[2])
		redis.call('ZADD', prefix .. ':dead', ms, b[1])
		job_buried(prefix, b[3], b[4])
	end
	local claimed, adopted = open_parse(open)
	for _, g in ipairs(park) do
		local batch = prefix .. ':b:' .. slot .. ':' .. g.seq
		move_beside(batch, g.pairs)
		for i = 1, #g.pairs, 4000 do
			redis.call('HSET', batch,
				unpack(g.pairs, i, math.min(i + 3999, #g.pairs)))
		end
		if #g.pairs > 0 then
			redis.call('HSET', prefix .. ':open', slot .. ':' .. g.seq,
				open_value(claimed, adopted, g.retry, g.topic))
		end
		last = math.max(last, tonumber(g.seq))
	end
	if #park > 0 then
		use_seq(prefix, slot, epoch, nonce, int(last))
	end
	redis.call('UNLINK', prefix .. ':b:' .. name)
	redis.call('HDEL', prefix .. ':open', name)
	if #bury > 0 then
		return trim_dead(prefix, keep)
	end
	return { 'settled' }
end
