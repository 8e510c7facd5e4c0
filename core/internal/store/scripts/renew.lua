-- Starts the leases of held locks anew; never shortens one that a Redisson client may
-- have given.
--
-- KEYS     the locks, hashes; see hash.lua, holders.lua
-- ARGV     of each lock: owner, token of the acquisition to renew, lease in ms; with a +
--          before it when it is the first lease after a grant
--
-- Returns  1, or 0 when the lock is not ours any more; of more than one lock, see
--          batch.lua in package conn
local count = #KEYS
local call = redis.call

-- include hash
-- include holders

local function renew_holder(lock, mode, owner, token, lease, first)
  local time = call('TIME')
  local now = time[1] .. string.sub('00000' .. time[2], -6)
  local holder = read_holder(lock, owner, now)
  if not holder or holder.token ~= token then
    return 0
  end
  holder.left = tonumber(lease)
  holder.lease = first and lease or holder.lease
  -- A PEXPIRE first, or a Redis that is out of memory refuses to write.
  call('PEXPIRE', lock, math.max(call('PTTL', lock), holder.left))
  write_holder(lock, owner, holder, now)
  outlast(lock, mode, holder.left)
  return 1
end

local function each(i)
  local lock, owner, token, lease = KEYS[i], unpack(ARGV, 3 * i - 2, 3 * i)
  local held = call('HMGET', lock, owner, 'mode')
  local current, _, further = read_mode(held[2])
  local first = string.byte(lease) == 43
  lease = first and string.sub(lease, 2) or lease
  if not held[1] or current ~= token then
    return kind_of(held[2]) and renew_holder(lock, held[2], owner, token, lease, first) or 0
  end
  local ttl = (further or held[1] ~= '1') and call('PTTL', lock) or 0
  call('PEXPIRE', lock, math.max(ttl, lease)) -- if to no effect: see touch.lua
  if first then -- after the PEXPIRE, or a Redis that is out of memory refuses it
    call('HSET', lock, 'mode', mode_of(token, lease, further))
  end
  return 1
end
