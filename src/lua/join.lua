-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common batch
--
-- join - lease the lowest slot that nobody holds, under a new epoch.
--
-- ARGV: instance, nonce, lease ms, then slot, epoch and highest seq of the stay
-- that the caller had before this one (0 0 0 without one).
-- Answer: now us, slot, epoch, highest seq used, then the `<slot>:<seq>` of
-- every batch that the slot's former holder left open (1,000 at most).
-- Asking again with the same nonce gives the same slot: a lost answer costs
-- nothing.
--
-- After a backup was put back `epoch` may know less than was used since; so
-- the new epoch is above, and the highest seq not below, what the caller, the
-- former lease and the open batches tell.
--
-- Removes before it adds: an instance must be able to start, and to drain,
-- when Redis is out of memory.

-- Epoch and highest seq that the slot is known to have used.
local function used(prefix, slot, open, before)
	local held = redis.call('HGET', prefix .. ':epoch', slot) or ''
	local lease = redis.call('HGET', prefix .. ':slots', slot) or ''
	local epoch, seq = string.match(held, '^(%d+):[^:]*:(%d+)$')
	epoch = math.max(tonumber(epoch or 0), tonumber(string.match(lease, '^(%d+):') or 0))
	seq = tonumber(seq or 0)
	if before[1] == slot then
		epoch, seq = math.max(epoch, tonumber(before[2])), math.max(seq, tonumber(before[3]))
	end
	for _, name in ipairs(open) do
		local of, number = string.match(name, '^(%d+):(%d+)$')
		if of == slot then
			seq = math.max(seq, tonumber(number))
		end
	end
	return epoch, seq
end

local function lapse_join(keys, argv)
	local prefix, instance, nonce, lease = keys[1], argv[1], argv[2], tonumber(argv[3])
	redis.call('SELECT', NSDB)
	local us = now_us()
	local slot, held = 0, nil
	local mine = ':' .. nonce .. ':'
	local open = redis.call('HKEYS', prefix .. ':open')
	local epochs = redis.call('HGETALL', prefix .. ':epoch')
	for i = 1, #epochs, 2 do
		if string.find(epochs[i + 1], mine, 1, true) then
			slot, held = tonumber(epochs[i]), epochs[i + 1]
		end
	end
	if not held then
		while lease_left(prefix, int(slot), us) > 0 do
			slot = slot + 1
		end
		local epoch, seq = used(prefix, int(slot), open, { argv[4], argv[5], argv[6] })
		held = int(epoch + 1) .. ':' .. nonce .. ':' .. int(seq)
		redis.call('HDEL', prefix .. ':epoch', int(slot))
		redis.call('HSET', prefix .. ':epoch', int(slot), held)
	end
	local epoch, seq = string.match(held, '^(%d+):[^:]*:(%d+)$')
	redis.call('HDEL', prefix .. ':slots', int(slot))
	redis.call('HSET', prefix .. ':slots', int(slot),
		epoch .. ':' .. int(math.floor(us / 1000) + lease) .. ':' .. instance)
	local answer = { int(us), int(slot), epoch, seq }
	local mark = int(slot) .. ':'
	for _, name in ipairs(open) do
		if string.sub(name, 1, #mark) == mark and #answer < 1004 then
			answer[#answer + 1] = name
		end
	end
	return answer
end
