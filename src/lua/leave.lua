-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common batch
--
-- leave - give the slot back at once; what is still open may be adopted now.
--
-- ARGV: slot, epoch, nonce.  Answer: `left`.
--
-- Without the right to tell the others it is done all the same: they see it
-- at their next renewal.
local function lapse_leave(keys, argv)
	local prefix, slot = keys[1], argv[1]
	redis.call('SELECT', NSDB)
	local seq, fenced = fence(prefix, slot, argv[2], argv[3])
	if not seq then
		return fenced
	end
	redis.call('HDEL', prefix .. ':slots', slot)
	redis.call('HSET', prefix .. ':epoch', slot, argv[2] .. '::' .. int(seq))
	redis.pcall('PUBLISH', prefix .. ':wake', 'left')
	return { 'left' }
end
