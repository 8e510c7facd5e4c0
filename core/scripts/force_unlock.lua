-- Frees a lock or ends a dedup window, whoever holds it.
--
-- KEYS[1]  the lock, a hash
-- ARGV[1]  wake-up channel
-- ARGV[2]  PUBLISH or SPUBLISH
--
-- Returns  {1}  freed
--          {0}  it was free
-- HLEN refuses a key of another type, so that only a lock can be deleted.
if redis.call('HLEN', KEYS[1]) == 0 then
  return {0}
end
redis.call('DEL', KEYS[1])
redis.pcall(ARGV[2], ARGV[1], '0')
return {1}
