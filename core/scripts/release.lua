-- Ends one hold; the last one frees the lock, or leaves its dedup window.
-- Sent twice, it counts once.
--
-- KEYS[1]  the lock, a hash
-- KEYS[2]  tombstone of this hold
-- ARGV[1]  owner: the hash field that counts holds
-- ARGV[2]  hold: the hash field that marks this one
-- ARGV[3]  wake-up channel
-- ARGV[4]  '1' when the work failed: if this is the outermost hold, no dedup window
-- ARGV[5]  lifetime of the tombstone in ms, 0 to write none. With one, an
--          acquisition of this hold that arrives later is refused.
-- ARGV[6]  PUBLISH or SPUBLISH
--
-- Returns  {0}        there is no such hold
--          {1, left}  ended; left is the number of holds that remain
--          {2, ttl}   ended; the dedup window lasts ttl ms
local lock, owner, hold = KEYS[1], ARGV[1], ARGV[2]

if tonumber(ARGV[5]) > 0 then
  redis.call('SET', KEYS[2], 1, 'PX', ARGV[5])
end

local mark = redis.call('HGET', lock, hold)
if not mark then
  return {0}
end
redis.call('HDEL', lock, hold)
if mark == '1' and ARGV[4] == '1' then
  redis.call('HDEL', lock, 'latchkey:keep')
end

local left = redis.call('HINCRBY', lock, owner, -1)
if left > 0 then
  local lease = tonumber(redis.call('HGET', lock, 'latchkey:lease') or '-1')
  if redis.call('PTTL', lock) < lease then
    redis.call('PEXPIRE', lock, lease)
  end
  return {1, left}
end

local keep = redis.call('HGET', lock, 'latchkey:keep')
redis.call('DEL', lock)
if keep then
  local now = redis.call('TIME')
  local rest = tonumber(keep) - tonumber(now[1]) * 1000 - math.floor(tonumber(now[2]) / 1000)
  if rest > 0 then
    redis.call('HSET', lock, 'latchkey:window', 1)
    redis.call('PEXPIRE', lock, rest)
    return {2, rest}
  end
end
-- Without permission for the channel the waiters find out by polling.
redis.pcall(ARGV[6], ARGV[3], '0')
return {1, 0}
