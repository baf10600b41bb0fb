-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common batch
--
-- renew - extend the lease, and look around.
--
-- ARGV: slot, epoch, nonce, lease ms, instance, and `1` when the holder wants
-- to compare what it holds: after a failover Redis may have back what it had
-- settled, or have a claim whose answer was lost with the connection.
-- Answer: now us, n, then n times (slot, what is left of its lease in ms,
-- instance) for every live holder, then the `<slot>:<seq>` of open batches
-- whose slot nobody holds (100 at most; the next renewal tells the rest), and
-- of all of its own where they were wanted.
-- In passing `seen` forgets, so that it empties when nothing is claimed.
-- Removes before it adds, so that a lease goes on when Redis is out of memory.
local function lapse_renew(keys, argv)
	local prefix, slot, epoch, nonce = keys[1], argv[1], argv[2], argv[3]
	redis.call('SELECT', NSDB)
	local seq, fenced = fence(prefix, slot, epoch, nonce)
	if not seq then
		return fenced
	end
	local us = now_us()
	local ms = math.floor(us / 1000)
	local slots = redis.call('HGETALL', prefix .. ':slots')
	local live, answer, ended = {}, { int(us), '0' }, {}
	local instance = ''
	for i = 1, #slots, 2 do
		local _, until_, name = string.match(slots[i + 1], '^(%d+):(%d+):(.*)$')
		if slots[i] == slot then
			instance = name
		elseif tonumber(until_) > ms then
			live[slots[i]] = true
			answer[#answer + 1] = slots[i]
			answer[#answer + 1] = int(tonumber(until_) - ms)
			answer[#answer + 1] = name
		else
			ended[#ended + 1] = slots[i]
		end
	end
	live[slot] = true
	answer[#answer + 1] = slot
	answer[#answer + 1] = argv[4]
	answer[#answer + 1] = argv[5] or instance
	answer[2] = int((#answer - 2) / 3)
	local orphans = 0
	for _, name in ipairs(redis.call('HKEYS', prefix .. ':open')) do
		local of = string.match(name, '^%d+')
		local orphan = not live[of] and orphans < 100
		if orphan then
			orphans = orphans + 1
		end
		if orphan or (of == slot and argv[6] == '1') then
			answer[#answer + 1] = name
		end
	end
	trim_seen(prefix, ms, 1000)
	for i = 1, #ended do
		redis.call('HDEL', prefix .. ':slots', ended[i])
	end
	redis.call('HDEL', prefix .. ':slots', slot)
	redis.call('HSET', prefix .. ':slots', slot,
		epoch .. ':' .. int(ms + tonumber(argv[4])) .. ':' .. (argv[5] or instance))
	return answer
end
