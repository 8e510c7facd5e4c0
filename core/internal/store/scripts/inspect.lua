-- Reads a lock.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
--
-- Returns  {ttl, fields, time}  ttl in ms, -2 when there is no lock; fields as HGETALL gives
--                               them, but of an answer only that there is one; time in µs
local time = redis.call('TIME')
local answered = redis.call('HEXISTS', KEYS[1], 'latchkey:answer') == 1
local fields = answered and {'latchkey:answer', ''} or redis.call('HGETALL', KEYS[1])
return {redis.call('PTTL', KEYS[1]), fields, time[1] .. string.sub('00000' .. time[2], -6)}
