-- Frees a lock, ends a dedup window, or evicts one holder of several. Tells all who wait.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  the owner who must hold it; '' for what nobody holds: a dedup window, or a lock that
--          is parked; absent: whoever holds it, all of them
--
-- Returns  {10, ''}  done
--          {0, ''}   it was free, or is not that owner's
local call = redis.call
local lock, clock, owner = KEYS[1], KEYS[2], ARGV[1] or ''
-- HLEN refuses a key of another type, so that only a lock can be deleted.
if call('HLEN', lock) == 0 then
  return {0, ''}
end

-- include time
-- include pubsub
-- include lock
-- include write

-- include read
-- include holders
local nobodys = owner == '' and string.find('whi', kind, 1, true) and not next(holders())
if ARGV[1] and not mine and not nobodys then
  return {0, ''}
end
local several = ARGV[1] and string.find(kind, SEVERAL)
if several then
  remove(owner)
end
if not several or not next(holders()) then
  call('DEL', lock)
end
if held then -- its process may have given later tokens in memory
  -- include raise_clock
  raise_clock(string.format('%.0f', held.token + MARGIN))
end
redis.pcall(PUBLISH, CHANNEL .. lock .. '}', '0')
return {10, ''}
