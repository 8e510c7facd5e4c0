-- Frees a lock, ends a dedup window, evicts one holder of several, or an attempt, whose outcome is unknown then. Tells all who wait.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  the owner who must hold it; '' for what nobody holds: a dedup window, a lock that
--          is parked, a string; absent: whoever holds it, all of them
--
-- Returns  {10, ''}  done
--          {0, ''}   it was free, or is not that owner's
local call = redis.call
local lock, clock, owner = KEYS[1], KEYS[2], ARGV[1] or ''
-- include time
-- include pubsub
-- include string
-- include lock
-- include write
-- include tell

-- include read
-- include holders
local nobodys = owner == '' and (kind == 'f' or string.find(kind or '', STAYING) and not next(holders()))
if not kind or ARGV[1] and not mine and not nobodys then
  return {0, ''}
end
local attempt = kind == 'i' and next(holders()) -- nobody knows what it has done, and may yet do: the lock stays
local evicted = attempt or ARGV[1] and string.find(kind, SEVERAL) and owner
if evicted then
  remove(evicted)
end
if not evicted or not attempt and not next(holders()) then
  call('DEL', lock)
end
if held then -- its process may have given later tokens in memory
  -- include raise_clock
  raise_clock(string.format('%.0f', held.token + TOKEN_GAP))
end
tell('0')
return {10, ''}
