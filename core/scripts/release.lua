-- Ends one hold; the last one frees the lock, or leaves its dedup window.
-- Sent twice, it counts once.
--
-- KEYS[1]  the lock, a hash
-- KEYS[2]  tombstone of this hold, if one is to be written
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
--          {1, 0, heard}  and the lock is free; so many connections to this server heard it
--          {2, ttl}   ended; the dedup window lasts ttl ms
local call = redis.call
local lock, owner, hold = KEYS[1], ARGV[1], ARGV[2]

if ARGV[5] ~= '0' then
  call('SET', KEYS[2], 1, 'PX', ARGV[5])
end

local held = call('HMGET', lock, hold, owner, 'latchkey:keep')
if not held[1] then
  return {0}
end
local keep = held[3]
if held[1] == '1' and ARGV[4] == '1' then
  keep = false
end

if tonumber(held[2]) > 1 then
  call('HDEL', lock, hold)
  if held[3] and not keep then
    call('HDEL', lock, 'latchkey:keep')
  end
  local left = call('HINCRBY', lock, owner, -1)
  local lease = tonumber(call('HGET', lock, 'latchkey:lease') or '-1')
  if call('PTTL', lock) < lease then
    call('PEXPIRE', lock, lease)
  end
  return {1, left}
end

call('DEL', lock)
if keep then
  local now = call('TIME')
  local rest = keep - now[1] * 1000 - math.floor(now[2] / 1000)
  if rest > 0 then
    call('HSET', lock, 'latchkey:window', 1)
    call('PEXPIRE', lock, rest)
    return {2, rest}
  end
end
-- Without permission for the channel the waiters find out by polling.
local heard = redis.pcall(ARGV[6], ARGV[3], '0')
return {1, 0, tonumber(heard) or 0}
