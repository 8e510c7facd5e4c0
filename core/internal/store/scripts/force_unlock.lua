-- Frees a lock or ends a dedup window.
--
-- KEYS[1]  the lock, a hash; see hash.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  the owner who must hold it, '' for a dedup window; absent: whoever holds it
--
-- Returns  {1}  freed
--          {0}  it was free, or is not that owner's
local call = redis.call
local lock, owner = KEYS[1], ARGV[1]
-- HLEN refuses a key of another type, so that only a lock can be deleted.
if call('HLEN', lock) == 0 then
  return {0}
end

-- include pubsub
-- include next_token
-- include hash

local mode = call('HGET', lock, 'mode')
local token = read_mode(mode)
if owner == '' and not string.match(mode or '', '^w%d+$') or owner and owner ~= '' and call('HEXISTS', lock, owner) == 0 then
  return {0}
end
call('DEL', lock)
if token then
  -- The holder may have given later tokens to calls of its process, and not told Redis yet.
  local last = call('GET', KEYS[2])
  token = string.format('%.0f', token + PASSED_ON)
  if not last or last < token then
    redis.pcall('SET', KEYS[2], token)
  end
end
redis.pcall(PUBLISH, 'redisson_lock__channel:{' .. lock .. '}', '0')
return {1}
