-- Takes a lock that was handed over. Sent twice with the same hold, it counts once.
--
-- KEYS[1]  the lock; see holders.lua
-- KEYS[2]  the queue, a sorted set; see queue.lua
-- KEYS[3]  the fencing clock of its hash slot
-- ARGV[1]  owner
-- ARGV[2]  hold
-- ARGV[3]  lease in ms, negative when nobody renews it
-- ARGV[4]  dedup window in ms from now, 0: what the lock had
-- ARGV[5]  digest of the ticket
--
-- Returns what acquire.lua does: {1, …}; {2, …} when somebody has resumed it already; {3} when
-- the ticket is of no use; {4} when this hold was given up before the script arrived
local call = redis.call
local lock, queue, clock = unpack(KEYS)
local owner, hold, lease, window, digest = unpack(ARGV)
local time = call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

-- include next_token
-- include hash
-- include holders
-- include queue
-- include touch

if (tonumber(call('ZSCORE', queue, member_of(owner, hold, ''))) or 0) >= TOMBSTONE then
  return {4}
end
local mode = call('HGET', lock, 'mode') or ''
local right, ttl = string.match(mode, '^h%d+ (%x+) (%d+)$')
if right ~= digest then
  return {3}
end
local holders, count = living(lock, now)
local holder = holders[owner]
if not holder and count > 0 then
  return {2, call('PTTL', lock), 0, tonumber(now), 0}
elseif not holder then
  local token = next_token(clock, now)
  holder = {left = math.abs(lease), lease = lease, token = token, holds = hold}
  mode = 'h' .. token .. ' ' .. digest .. ' ' .. ttl
  call('HSET', lock, 'mode', mode)
  call('HDEL', lock, 'latchkey:left')
  write_holder(lock, owner, holder, now)
  outlast(lock, mode, holder.left)
  if window ~= '0' then
    call('HSET', lock, 'latchkey:keep', keep(window, now))
  end
else
  touch(lock)
end
return {1, holder.token, tonumber(lease), holder.left, 1, holder.token > now and 1 or nil}
