-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms store
--
-- schedule - store an event, in place of a pending one of the same id.
--
-- KEYS: prefix.
-- ARGV: id, time, topic, key (empty: none), payload, then options: `nx 1`,
-- `if_due_before` time, `type`, `content-type`, `header.<name>`, and for a job
-- (job.lua) `ttr` ms, `attempts` (5), `backoff` <first ms>:<factor>:<most ms>
-- (none).
-- Answer: `scheduled` or `replaced`, due ms, ce_id.
--
-- ZADD is the first write: when Redis is out of memory it is refused, and
-- with it the call; what follows is then refused no more.
local function lapse_schedule(keys, argv)
	local wrong = bad_call(keys, argv, 1, 5)
	if wrong then
		return wrong
	end
	redis.call('SELECT', NSDB)
	local us, now = clock()
	local e, refused = store_read(keys[1], argv, us)
	if not e then
		return refused
	end
	wake(keys[1], e.text, now)
	return store_event(keys[1], e, us, now)
end
