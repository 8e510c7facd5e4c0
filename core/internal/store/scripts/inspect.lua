-- Reads a lock.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  its queue; see queue.lua
-- ARGV[1]  '1' to write as well, as in end_hold.lua; absent: who may only read asks
--
-- Returns  {13, '', ttl, time, fields, queue}  ttl in ms, -2 when there is no lock; time in µs; fields as HGETALL gives them, but
--                                       of an answer only that there is one, and of a string the mode f; queue: its first 100
--                                       members and their scores
local call = redis.call
local lock = KEYS[1]
-- include time
-- include string
local failed = ARGV[1] and unwritable()
if failed then
  return failed
end
local answered = redis.pcall('HEXISTS', lock, 'latchkey:answer')
local fields = is_string(answered) and {'mode', 'f'} or answered == 1 and {'latchkey:answer', ''} or call('HGETALL', lock)
return {13, '', call('PTTL', lock), tonumber(now), fields, call('ZRANGE', KEYS[2], 0, 99, 'WITHSCORES')}
