-- Reads a lock.
--
-- KEYS[1]  the lock, a hash
--
-- Returns  {ttl, fields}  ttl in ms, -2 when there is no lock; fields as HGETALL gives them
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1])}
