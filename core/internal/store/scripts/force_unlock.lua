-- Frees a lock or ends a dedup window.
--
-- KEYS[1]  the lock, a hash; see acquire.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  wake-up channel
-- ARGV[2]  PUBLISH or SPUBLISH
-- ARGV[3]  the owner who must hold it, '' for a dedup window; absent: whoever holds it
--
-- Returns  {1}  freed
--          {0}  it was free, or is not that owner's
local call = redis.call
-- HLEN refuses a key of another type, so that only a lock can be deleted.
if call('HLEN', KEYS[1]) == 0 then
  return {0}
end
local owner = ARGV[3]
if owner == '' then
  owner = 'latchkey:window'
end
if owner and call('HEXISTS', KEYS[1], owner) == 0 then
  return {0}
end
local held = call('HMGET', KEYS[1], 'latchkey:held', 'latchkey:token')
local token = held[2] or string.match(held[1] or '', '^%d+')
call('DEL', KEYS[1])
if token then
  -- The holder may have given later tokens to calls of its process, and not told Redis
  -- yet: fewer than a million.
  local last = call('GET', KEYS[2])
  token = string.format('%.0f', token + 1e6)
  if not last or last < token then
    redis.pcall('SET', KEYS[2], token)
  end
end
redis.pcall(ARGV[2], ARGV[1], '0')
return {1}
