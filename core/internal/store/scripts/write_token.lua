-- Raises the fencing token of a lock that a quorum has granted to the greatest
-- that one of its members gave.
--
-- KEYS[1]  the lock, a hash
-- KEYS[2]  the lock's last fencing token
-- ARGV[1]  hold: the hash field that marks the acquisition
-- ARGV[2]  token
-- ARGV[3]  how long the last token is kept, in ms
--
-- Returns  {1}  the lock has the token
--          {0}  the lock is not ours any more
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return {0}
end
redis.call('HSET', KEYS[1], 'latchkey:token', ARGV[2])
local last = tonumber(redis.call('GET', KEYS[2]) or '0')
if last < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
end
return {1}
