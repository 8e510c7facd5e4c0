-- Frees a lock, ends a dedup window or one holder of several.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  the owner who must hold it; '' for what nobody holds: a dedup window, or a lock that
--          is parked; absent: whoever holds it, all of them
--
-- Returns  {1}  done
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
-- include holders

local mode = call('HGET', lock, 'mode')
local token, kind = read_mode(mode), kind_of(mode)
local held = not string.match(mode or '', '^w%d+')
if lasts(kind) then
  local time = call('TIME')
  local _, count = living(lock, time[1] .. string.sub('00000' .. time[2], -6))
  held = count > 0
end
if owner == '' and held or owner and owner ~= '' and call('HDEL', lock, kind and HOLDER .. owner or owner) == 0 then
  return {0}
end
if not owner or not kind or lasts(kind) or call('HLEN', lock) == 1 then
  call('DEL', lock)
end
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
