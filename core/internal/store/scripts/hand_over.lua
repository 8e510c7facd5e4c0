-- Parks an exclusive lock for whoever resumes it by its ticket, or takes that back.
-- Sent twice, it counts once; once it was taken back it is refused.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  owner
-- ARGV[2]  its only hold
-- ARGV[3]  token of the acquisition
-- ARGV[4]  the last token that the process has given under it
-- ARGV[5]  digest of the ticket
-- ARGV[6]  for how long it is parked, in ms; of a lock that is taken back, what its lease lasts
-- ARGV[7]  lease of a lock that is taken back, see hash.lua; '' to park it
-- ARGV[8]  what the request and its taking back have in common, and no other
-- ARGV[9]  '1' when the dedup window does not go along
--
-- Returns  1  parked; or held as before
--          0  it is not that owner's any more
--          2  there are other holds
local call = redis.call
local lock, clock = KEYS[1], KEYS[2]
local owner, hold, token, last, digest, ttl, lease, request, drop = unpack(ARGV)

-- include next_token
-- include hash
-- include touch

local back = 'latchkey:back:' .. request
local held = call('HMGET', lock, owner, 'mode', back, 'latchkey:left')
local parked = 'h' .. last .. ' ' .. digest .. ' '
local is_parked = string.sub(held[2] or '', 1, #parked) == parked
if not is_parked and (not held[1] or read_mode(held[2]) ~= token) then
  return 0
end

if lease ~= '' then
  if is_parked then
    call('HSET', lock, owner, '1')
    if owner ~= hold then
      call('HSET', lock, 'latchkey:hold:' .. hold, 'first')
    end
  end
  if is_parked or tonumber(lease) > 0 and call('PTTL', lock) < tonumber(ttl) then
    call('PEXPIRE', lock, ttl)
  end
  call('HSET', lock, 'mode', mode_of(token, lease, true), back, 'yes')
  return 1
end

if is_parked then
  touch(lock)
  return 1
elseif held[3] then
  return 0
elseif held[1] ~= '1' or held[4] then
  return 2
end
local failure = lift(clock, last)
if failure then
  return failure
end
call('HDEL', lock, owner, 'latchkey:hold:' .. hold, drop == '1' and 'latchkey:keep' or owner)
call('HSET', lock, 'mode', parked .. ttl)
call('PEXPIRE', lock, ttl)
return 1
