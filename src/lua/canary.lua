-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common
--
-- canary - have Redis publish what an instance then expects to hear.
--
-- ARGV: a watched database, name of the instance's canary, its TTL in ms.
-- Answer: `1` when the canary was not there (had it been set, our look publishes
-- its expiry, if the active cycle has not), else `0`; then `1` when it was set
-- anew, `0` when Redis was out of memory.
local function lapse_canary(keys, argv)
	local prefix, name = keys[1], argv[2]
	local key = prefix .. ':canary:' .. name
	redis.call('SELECT', tonumber(argv[1]))
	local gone = redis.call('EXISTS', key) == 0
	local set = redis.pcall('SET', key, '', 'PX', argv[3])
	redis.call('SELECT', NSDB)
	redis.call('PUBLISH', prefix .. ':wake', 'canary ' .. name)
	return { gone and '1' or '0', set.ok and '1' or '0' }
end
