-- Starts the leases of held locks anew; never shortens one.
--
-- KEYS     the locks, hashes
-- ARGV     of each lock: owner, token of the acquisition to renew, lease in ms
--
-- Returns  1, or 0 when the lock is not ours any more; of more than one lock, see
--          each.lua
local count = #KEYS

local function each(i)
  local lock, owner, token, lease = KEYS[i], unpack(ARGV, 3 * i - 2, 3 * i)
  local held = redis.call('HMGET', lock, owner, 'latchkey:token')
  if not held[1] or held[2] ~= token then
    return 0
  end
  if redis.call('PTTL', lock) < tonumber(lease) then
    return redis.call('PEXPIRE', lock, lease)
  end
  return 1
end
