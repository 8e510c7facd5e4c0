-- Frees a lock or ends a dedup window.
--
-- KEYS[1]  the lock, a hash
-- ARGV[1]  wake-up channel
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  the owner who must hold it, '' for a dedup window; absent: whoever holds it
--
-- Returns  {1}  freed
--          {0}  it was free, or is not that owner's
-- HLEN refuses a key of another type, so that only a lock can be deleted.
if redis.call('HLEN', KEYS[1]) == 0 then
  return {0}
end
local owner = ARGV[3]
if owner == '' then
  owner = 'latchkey:window'
end
if owner and redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return {0}
end
redis.call('DEL', KEYS[1])
redis.pcall(ARGV[2], ARGV[1], '0')
return {1}
