-- SPDX-License-Identifier: BSD-2-Clause
--
-- take - what cancel and its bulk form share.  Needs common, record, app, job.

-- The answer of cancel for one id.
local function take_back(prefix, id)
	if not size_ok(id, 1, MAX_NAME) then
		return bad('id must be 1 to ' .. MAX_NAME .. ' bytes')
	end
	local member = 's:' .. id
	local due = redis.call('ZSCORE', prefix .. ':due', member)
	if due then
		redis.call('ZREM', prefix .. ':due', member)
		redis.call('HDEL', prefix .. ':rec', member)
		return { 'cancelled', int(due), 'scheduled' }
	end
	local job = job_find(prefix, member)
	if not job then
		return not_pending(prefix, member)
	end
	local was, at = job.state, job.at
	if was == 'in-flight' then
		was, at = job_unpark(prefix, member, job.record)
	end
	job_move(job, 'gone')
	return { 'cancelled', int(at), was }
end
