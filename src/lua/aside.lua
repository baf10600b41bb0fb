-- SPDX-License-Identifier: BSD-2-Clause
--
-- aside - a life of a watched key that is over, out of the way of the next one.
-- Needs common and record.

-- `seen` absorbs the notification, since the life it tells of waits here.
-- `certainty` is how we know that it is over; nil: it was gone when we looked.
local function move_aside(prefix, member, score, record, us, certainty)
	local birth = record_head(record)
	local aside = 'e:' .. int(birth or us) .. string.sub(member, 2)
	record = record or record_pack(us, 0, '')
	redis.call('ZADD', prefix .. ':due', score, aside)
	redis.call('HSET', prefix .. ':rec', aside, certainty and record_end(record, certainty)
		or record)
	redis.call('ZADD', prefix .. ':seen', int(math.floor(us / 1000)), member)
end
