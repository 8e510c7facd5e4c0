-- Reads a lock.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
--
-- Returns  {ttl, fields, time}  ttl in ms, -2 when there is no lock; fields as HGETALL gives
--                               them, but without the text of an answer; time in µs
local time = redis.call('TIME')
local fields = redis.call('HGETALL', KEYS[1])
for i = 1, #fields, 2 do
  if fields[i] == 'latchkey:answer' then
    fields[i + 1] = ''
  end
end
return {redis.call('PTTL', KEYS[1]), fields, time[1] .. string.sub('00000' .. time[2], -6)}
