-- SPDX-License-Identifier: BSD-2-Clause
--
-- batch - what the scripts of the daemon share: the fence, and the answer
-- that carries a batch.

-- Checks that (slot, epoch, nonce) still holds the slot.  Gives the highest
-- seq the slot has used, or nil and the error to answer with.
local function fence(prefix, slot, epoch, nonce)
	local held = redis.call('HGET', prefix .. ':epoch', slot)
	local head = epoch .. ':' .. nonce .. ':'
	if held and string.sub(held, 1, #head) == head then
		return tonumber(string.sub(held, #head + 1))
	end
	return nil, redis.error_reply('LAPSE_FENCED slot ' .. slot .. ' is not held under this epoch')
end

-- The slot's highest seq moves to `seq`; the holder stays.
local function use_seq(prefix, slot, epoch, nonce, seq)
	redis.call('HSET', prefix .. ':epoch', slot, epoch .. ':' .. nonce .. ':' .. seq)
end

-- Redis does not undo what a script did before it is refused (a right is
-- missing, a key is of another type).  So what moves is added first and removed
-- last, and an entry stands twice rather than nowhere; and this, which changes
-- nothing, finds out about the removals beforehand.  After it Redis refuses no
-- write for want of memory, since it was one.
local function first_writes(prefix, name)
	redis.call('HDEL', prefix .. ':open', '')
	redis.call('ZREM', prefix .. ':due', name)
	redis.call('ZADD', prefix .. ':seen', 'XX', 0, name)
end

-- Another name for a life of a member, beside which another life stands.
local function alias(member, birth)
	local kind = string.sub(member, 1, 2)
	if kind == 'k:' or kind == 's:' then
		return (kind == 'k:' and 'e:' or 'p:') .. int(birth) .. string.sub(member, 2)
	end
	return member
end

-- What a scheduled event is called when no other life is in its way.
local function canonical(member)
	if string.sub(member, 1, 2) == 'p:' then
		return 's' .. string.match(member, '^p:%d*(:.*)$')
	end
	return member
end

-- claimed ms, times adopted, retry ms, topic of a value in `open`.
local function open_parse(value)
	local claimed, adopted, retry, topic =
		string.match(value or '', '^(%d+) (%d+) ?(%d*) ?(.*)$')
	return claimed or '0', tonumber(adopted or 0), retry or '', topic or ''
end

-- Its reverse; `topic` is empty unless the batch is parked.
local function open_value(claimed, adopted, retry, topic)
	local value = claimed .. ' ' .. int(adopted)
	return topic == '' and value or value .. ' ' .. retry .. ' ' .. topic
end

-- The answer for batch <slot>:<seq> as it stands in Redis.  A parked one
-- comes without its entries unless `entries` is asked for.
local function batch_answer(prefix, us, slot, seq, entries)
	local name = slot .. ':' .. seq
	local _, adopted, retry, topic = open_parse(redis.call('HGET', prefix .. ':open', name))
	local answer = { int(us), '-1', '0', '0', int(adopted), topic, retry ~= '' and retry or '0' }
	if topic == '' or entries then
		local pairs_ = redis.call('HGETALL', prefix .. ':b:' .. name)
		for i = 1, #pairs_ do
			answer[#answer + 1] = pairs_[i]
		end
	end
	return answer
end

-- A live holder's lease has not ended; `left` is what remains of it, ms.
local function lease_left(prefix, slot, us)
	local value = redis.call('HGET', prefix .. ':slots', slot)
	if not value then
		return 0
	end
	return tonumber(string.match(value, '^%d+:(%d+):')) - math.floor(us / 1000)
end

-- Calls `command key ...` with `list` (from `first` on), in pieces that Lua can
-- unpack.
local function in_pieces(command, key, list, first)
	for i = first or 1, #list, 4000 do
		redis.call(command, key, unpack(list, i, math.min(i + 3999, #list)))
	end
end

-- `seen` forgets what is older than a minute, `most` at a time.
local function trim_seen(prefix, ms, most)
	local seen = prefix .. ':seen'
	in_pieces('ZREM', seen, redis.call('ZRANGEBYSCORE', seen, '-inf', int(ms - 60000),
		'LIMIT', 0, most))
end
