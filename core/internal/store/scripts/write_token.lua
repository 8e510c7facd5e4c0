-- Raises the fencing token of a lock that a quorum has granted to the greatest
-- that one of its members gave.
--
-- KEYS[1]  the lock, a hash; see hash.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  owner: the hash field that counts holds
-- ARGV[2]  token
--
-- Returns  {1}  the lock has the token
--          {0}  the lock is not ours any more
local call = redis.call
local lock, owner, token = KEYS[1], ARGV[1], ARGV[2]

-- include hash

local held = call('HMGET', lock, owner, 'mode')
local current, lease, further = read_mode(held[2])
if not held[1] or not current then
  return {0}
end
call('HSET', lock, 'mode', mode_of(token, lease, further))
local last = call('GET', KEYS[2])
if not last or last < token then
  call('SET', KEYS[2], token)
end
return {1}
