-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record app terms job take
-- flags: allow-oom
--
-- cancel_bulk - cancel up to 1,000 events by a list of ids.
--
-- KEYS: prefix.  ARGV: ids.
-- Answer: a list of the answers of cancel, errors among them, in order.
local function lapse_cancel_bulk(keys, argv)
	if #keys ~= 1 or not prefix_ok(keys[1]) or #argv == 0 or #argv > 1000 then
		return bad('one prefix such as lapse:{0}, and 1 to 1000 ids, are needed')
	end
	redis.call('SELECT', NSDB)
	return take_back(keys[1], argv)
end
