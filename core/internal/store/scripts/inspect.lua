-- Reads a lock.
--
-- KEYS[1]  the lock; see lock.lua
--
-- Returns  {13, '', ttl, time, fields}  ttl in ms, -2 when there is no lock; time in µs; fields as HGETALL
--                                       gives them, but of an answer only that there is one
local call = redis.call
-- include time
local answered = call('HEXISTS', KEYS[1], 'latchkey:answer') == 1
return {13, '', call('PTTL', KEYS[1]), tonumber(now), answered and {'latchkey:answer', ''} or call('HGETALL', KEYS[1])}
