-- Raises the fencing token of a lock that a quorum has granted to the greatest
-- that one of its members gave.
--
-- KEYS[1]  the lock, a hash; see acquire.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  owner: the hash field that counts holds
-- ARGV[2]  hold: the hash field that marks the acquisition
-- ARGV[3]  token
--
-- Returns  {1}  the lock has the token
--          {0}  the lock is not ours any more
local call = redis.call
local token = ARGV[3]
local held = call('HMGET', KEYS[1], ARGV[1], ARGV[2], 'latchkey:held')
if held[1] and held[3] and ARGV[2] == 'latchkey:hold:' .. ARGV[1] then
  call('HSET', KEYS[1], 'latchkey:held', token .. string.match(held[3], '^%d+(.*)$'))
elseif held[2] then
  call('HSET', KEYS[1], 'latchkey:token', token)
else
  return {0}
end
local last = call('GET', KEYS[2])
if not last or last < token then
  call('SET', KEYS[2], token)
end
return {1}
