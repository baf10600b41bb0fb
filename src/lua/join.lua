-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common batch
--
-- join - lease the lowest slot that nobody holds, under a new epoch.
--
-- ARGV: instance, nonce, lease ms.
-- Answer: now us, slot, epoch, highest seq used, then the `<slot>:<seq>` of
-- every batch that the slot's former holder left open (1,000 at most).
-- Asking again with the same nonce gives the same slot: a lost answer costs
-- nothing.
--
-- Removes before it adds: an instance must be able to start, and to drain,
-- when Redis is out of memory.
local function lapse_join(keys, argv)
	local prefix, instance, nonce, lease = keys[1], argv[1], argv[2], tonumber(argv[3])
	redis.call('SELECT', NSDB)
	local us = now_us()
	local slot, held = 0, nil
	local mine = ':' .. nonce .. ':'
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
		held = redis.call('HGET', prefix .. ':epoch', int(slot)) or '0::0'
		local epoch, seq = string.match(held, '^(%d+):[^:]*:(%d+)$')
		held = int(tonumber(epoch) + 1) .. ':' .. nonce .. ':' .. seq
		redis.call('HDEL', prefix .. ':epoch', int(slot))
		redis.call('HSET', prefix .. ':epoch', int(slot), held)
	end
	local epoch, seq = string.match(held, '^(%d+):[^:]*:(%d+)$')
	redis.call('HDEL', prefix .. ':slots', int(slot))
	redis.call('HSET', prefix .. ':slots', int(slot),
		epoch .. ':' .. int(math.floor(us / 1000) + lease) .. ':' .. instance)
	local answer = { int(us), int(slot), epoch, seq }
	local mark = int(slot) .. ':'
	for _, name in ipairs(redis.call('HKEYS', prefix .. ':open')) do
		if string.sub(name, 1, #mark) == mark and #answer < 1004 then
			answer[#answer + 1] = name
		end
	end
	return answer
end
