-- Parks an exclusive lock for whoever resumes it by its ticket; or takes that back: the lock is held as before.
-- Sent twice, it counts once. A request that was taken back is refused if it arrives later.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  owner
-- ARGV[2]  its only hold
-- ARGV[3]  token of the acquisition
-- ARGV[4]  the last token that the process has given under it
-- ARGV[5]  digest of the ticket
-- ARGV[6]  for how long it is parked, in ms; to take it back: for how long the lock is to last, 0: it was lost, and ends
-- ARGV[7]  to take it back: the lease as lock.lua has it; '' to park it
-- ARGV[8]  id of the request, which its taking back has as well
-- ARGV[9]  '1' to drop the dedup window
--
-- Returns  {10, ARGV[8] .. ARGV[7]}  parked; or held as before
--          {0, the same}   it is not that owner's any more
--          {14, the same}  there are other holds
local call = redis.call
local lock, clock = KEYS[1], KEYS[2]
local owner, hold, token, last, ticket, ttl, lease, request, drop = unpack(ARGV)

local back = 'latchkey:back:' .. request

-- include time
-- include string
-- include lock

-- include read
local parked = kind == 'h' and number == last and digest == ticket
local ours = held and mine and mine.token == token
local sole = ours and mine.count == 1 and mine.holds == hold
if not parked and not ours then
  return unwritable() or {0, request .. lease}
end

if lease ~= '' then
  if ttl == '0' and (parked or sole) then
    call('DEL', lock) -- whatever else of this request arrives later finds nothing
    return {10, request .. lease}
  end
  if parked or tonumber(lease) > 0 and call('PTTL', lock) < tonumber(ttl) then
    call('PEXPIRE', lock, ttl)
  end
  local count, holds = parked and 1 or mine.count, parked and hold or mine.holds
  mode = 'x' .. token .. ' ' .. lease .. (holds == owner and '' or ' ' .. holds) .. '+'
  call('HSET', lock, owner, count, 'mode', mode, back, 'yes')
  return {10, request .. lease}
end

if parked then
  call('PEXPIRE', lock, call('PTTL', lock)) -- a write, as in write.lua, that needs no memory
  return {10, request .. lease}
elseif call('HGET', lock, back) then
  return {0, request .. lease}
elseif not sole then
  return {14, request .. lease}
end
-- include raise_clock
local failure = raise_clock(last)
if failure then
  return failure
end
-- Whoever lacks a right is refused before anything has changed: a refusal means that the lock is held as before.
call('PEXPIRE', lock, math.max(call('PTTL', lock), ttl))
call('HSET', lock, owner, '1')
call('HDEL', lock, owner, drop == '1' and 'latchkey:keep' or owner)
call('HSET', lock, 'mode', 'h' .. last .. ' ' .. ticket .. ' ' .. ttl, 'latchkey:by', owner)
call('PEXPIRE', lock, ttl)
return {10, request .. lease}
