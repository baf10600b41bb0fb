-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common batch
--
-- adopt - take over a batch whose slot nobody holds, or that an earlier
-- holder of our own slot left.
--
-- ARGV: slot, epoch, nonce, seq (ours, new), slot of the batch, its seq.
-- Answer: a batch answer; empty when the batch is gone or its slot is alive.
--
-- The epoch of a dead slot moves before its first batch does, so that its
-- late owner can neither settle nor claim.
--
-- A batch whose holders have died more than twice may hold a record that kills
-- whoever reads it: then only half is taken, the other half stays to be
-- adopted for itself, until such a record is alone.  (The daemon buries one
-- that is, once it has been adopted too often.)
local SUSPICIOUS = 2

-- Half of the entries of batch `from` in batch `to`, and the fields to remove
-- from `from`; nil when there is nothing to split.
local function copy_half(from, to)
	local members, pairs_ = redis.call('HKEYS', from), {}
	if #members < 2 then
		return nil
	end
	for i = #members, math.floor(#members / 2) + 1, -1 do
		members[i] = nil
	end
	local envelopes = redis.call('HMGET', from, unpack(members))
	for i = 1, #members do
		pairs_[2 * i - 1], pairs_[2 * i] = members[i], envelopes[i]
	end
	in_pieces('HSET', to, pairs_)
	return members
end

local function lapse_adopt(keys, argv)
	local prefix, slot, epoch, nonce, seq = keys[1], argv[1], argv[2], argv[3], argv[4]
	local from, name = argv[5], argv[5] .. ':' .. argv[6]
	redis.call('SELECT', NSDB)
	local last, fenced = fence(prefix, slot, epoch, nonce)
	if not last then
		return fenced
	end
	local us = now_us()
	if tonumber(seq) <= last then
		return batch_answer(prefix, us, slot, seq, false)
	end
	local nothing = { int(us), '-1', '0', '0', '0', '', '0' }
	if from ~= slot and lease_left(prefix, from, us) > 0 then
		return nothing
	end
	local open = redis.call('HGET', prefix .. ':open', name)
	if not open then
		return nothing
	end
	if redis.call('EXISTS', prefix .. ':b:' .. name) == 0 then
		redis.call('HDEL', prefix .. ':open', name)
		return nothing
	end
	first_writes(prefix, name)
	if from ~= slot then
		local held = redis.call('HGET', prefix .. ':epoch', from) or '0::0'
		local e, n, s = string.match(held, '^(%d+):([^:]*):(%d+)$')
		redis.call('HDEL', prefix .. ':slots', from)
		if n ~= '' then
			redis.call('HSET', prefix .. ':epoch', from, int(tonumber(e) + 1) .. '::' .. s)
		end
	end
	local claimed, adopted, retry, topic = open_parse(open)
	local old, new = prefix .. ':b:' .. name, prefix .. ':b:' .. slot .. ':' .. seq
	local half = adopted >= SUSPICIOUS and topic == '' and copy_half(old, new)
	if not half then
		redis.call('RENAME', old, new)
	end
	redis.call('HSET', prefix .. ':open', slot .. ':' .. seq,
		open_value(claimed, adopted + 1, retry, topic))
	use_seq(prefix, slot, epoch, nonce, seq)
	if half then
		in_pieces('HDEL', old, half)
	else
		redis.call('HDEL', prefix .. ':open', name)
	end
	return batch_answer(prefix, us, slot, seq, false)
end
