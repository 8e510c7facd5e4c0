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
-- ARGV[6]  for how long it is parked, in ms; to take it back: for how long the lock is to last
-- ARGV[7]  to take it back: the lease as lock.lua has it; '' to park it
-- ARGV[8]  id of the request, which its taking back has as well
-- ARGV[9]  '1' to drop the dedup window
--
-- Returns  {10}  parked; or held as before
--          {0}   it is not that owner's any more
--          {15}  there are other holds
local call = redis.call
local lock, clock = KEYS[1], KEYS[2]
local owner, hold, token, last, ticket, ttl, lease, request, drop = unpack(ARGV)

-- include time
-- include lock
-- include write

local mine = read(owner)
local parked = kind == 'h' and number == last and digest == ticket
local back = 'latchkey:back:' .. request
if not parked and not (kind == 'x' and mine and mine.token == token) then
  return {0}
end

if lease ~= '' then
  if parked then
    kind, mine = 'x', {token = token, holds = hold, count = 1}
  end
  if parked or tonumber(lease) > 0 and call('PTTL', lock) < tonumber(ttl) then
    call('PEXPIRE', lock, ttl)
  end
  mine.lease, mine.more = lease, true
  write(owner, mine)
  call('HSET', lock, back, 'yes')
  return {10}
end

if parked then
  call('PEXPIRE', lock, call('PTTL', lock)) -- as write does, and without memory
  return {10}
elseif call('HEXISTS', lock, back) == 1 then
  return {0}
elseif mine.count ~= 1 or mine.holds ~= hold then
  return {15}
end
-- include raise_clock
local failure = raise_clock(last)
if failure then
  return failure
end
call('HDEL', lock, owner, drop == '1' and 'latchkey:keep' or owner)
kind, number, digest, stays = 'h', last, ticket, ttl
call('HSET', lock, 'mode', mode_of())
call('PEXPIRE', lock, ttl)
return {10}
