-- Reads a lock.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  its queue; see queue.lua
--
-- Returns  {13, '', ttl, time, fields, queue}  ttl in ms, -2 when there is no lock; time in µs; fields as HGETALL
--                                       gives them, but of an answer only that there is one;
--                                       queue: its first 100 members and their scores
local call = redis.call
-- include time
local answered = call('HEXISTS', KEYS[1], 'latchkey:answer') == 1
return {13, '', call('PTTL', KEYS[1]), tonumber(now), answered and {'latchkey:answer', ''} or call('HGETALL', KEYS[1]),
  call('ZRANGE', KEYS[2], 0, 99, 'WITHSCORES')}
