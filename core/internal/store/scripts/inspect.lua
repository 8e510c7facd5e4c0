-- Reads a lock.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
--
-- Returns  {ttl, fields, time}  ttl in ms, -2 when there is no lock; fields as HGETALL gives
--                               them; time in µs
local time = redis.call('TIME')
return {redis.call('PTTL', KEYS[1]), redis.call('HGETALL', KEYS[1]), time[1] .. string.sub('00000' .. time[2], -6)}
