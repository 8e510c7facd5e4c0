-- Starts the lease of a held lock anew; never shortens it.
--
-- KEYS[1]  the lock, a hash
-- ARGV[1]  owner
-- ARGV[2]  token of the acquisition to renew
-- ARGV[3]  lease in ms
--
-- Returns  {1}  renewed
--          {0}  the lock is not ours any more
local lock, lease = KEYS[1], tonumber(ARGV[3])

local held = redis.call('HMGET', lock, ARGV[1], 'latchkey:token')
if not held[1] or held[2] ~= ARGV[2] then
  return {0}
end
if redis.call('PTTL', lock) < lease then
  redis.call('PEXPIRE', lock, lease)
end
return {1}
