-- Ends an attempt at a request that counts once with its answer, which later attempts get, for
-- as long as its dedup window lasts. Sent twice, it counts once.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
-- ARGV[1]  owner
-- ARGV[2]  hold
-- ARGV[3]  dedup window in ms from now
-- ARGV[4]  answer
--
-- Messages   0  to all: who waits is to ask for the answer
--
-- Returns what release.lua does: {0, 0} or {2, ttl}
local call = redis.call
local lock = KEYS[1]
local owner, hold, window, answer = unpack(ARGV)
local time = call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

-- include pubsub
-- include hash
-- include holders

local request = string.match(call('HGET', lock, 'mode') or '', '^i%d+ (%x+) %d+$')
local holder = request and read_holder(lock, owner, now)
if not holder or not holds(holder, hold) then
  return {0, 0}
end
call('HSET', lock, 'mode', 'w' .. window, 'latchkey:answer', request .. ' ' .. answer)
call('PEXPIRE', lock, window)
call('HDEL', lock, HOLDER .. owner)
redis.pcall(PUBLISH, 'redisson_lock__channel:{' .. lock .. '}', '0')
return {2, tonumber(window)}
