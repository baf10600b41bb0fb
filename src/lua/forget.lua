-- SPDX-License-Identifier: BSD-2-Clause
-- uses: common record batch
--
-- forget - acknowledged lives whose batch is gone (a failover lost the
-- claim) are removed from where they stand now, by their token.
--
-- ARGV: slot, epoch, nonce, then (member, birth, due) of each.
-- Answer: how many lives were still there.  A newer life of the same id or
-- key has another birth and stays.
local function lapse_forget(keys, argv)
	local prefix = keys[1]
	redis.call('SELECT', NSDB)
	local last, fenced = fence(prefix, argv[1], argv[2], argv[3])
	if not last then
		return fenced
	end
	local forgotten = 0
	for i = 4, #argv, 3 do
		local member, birth, due = argv[i], tonumber(argv[i + 1]), argv[i + 2]
		local record = redis.call('HGET', prefix .. ':rec', member)
		local same
		if record then
			same = record_head(record) == birth
		else
			same = redis.call('ZSCORE', prefix .. ':due', member) == due
		end
		if same then
			redis.call('ZREM', prefix .. ':due', member)
			redis.call('HDEL', prefix .. ':rec', member)
			forgotten = forgotten + 1
		end
	end
	return { int(forgotten) }
end
