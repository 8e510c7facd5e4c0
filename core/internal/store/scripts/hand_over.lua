-- Parks an exclusive lock for whoever resumes it by its ticket, or takes that back.
-- Sent twice, it counts once; taken back, it is refused when it arrives later.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
-- KEYS[2]  the fencing clock of its hash slot
-- ARGV[1]  owner, whose only hold is the outermost
-- ARGV[2]  token of the acquisition
-- ARGV[3]  digest of the ticket
-- ARGV[4]  for how long it is parked, in ms; '' to take it back
-- ARGV[5]  the last token that the process has given under this lock
-- ARGV[6]  lease in ms, negative when nobody renews it: of a lock that is taken back
--
-- Returns  {1}  parked; or taken back, and held as before
--          {0}  it is not that owner's, or not with this one hold
local call = redis.call
local lock, owner, token, digest, ttl, last, lease = KEYS[1], unpack(ARGV)

-- include next_token
-- include hash

local held = call('HMGET', lock, owner, 'mode', 'latchkey:back', 'latchkey:keep')
local parked = string.match(held[2] or '', '^h%d+ (%x+) %d+$') == digest
local current, _, further = read_mode(held[2])
local ours = held[1] == '1' and current == token

if ttl == '' then
  if parked and call('HLEN', lock) > (held[4] and 2 or 1) then
    return {0} -- it was resumed
  elseif parked then
    call('HSET', lock, owner, '1')
  elseif not ours then
    return {0}
  end
  call('HSET', lock, 'mode', mode_of(token, lease, true), 'latchkey:back', digest)
  call('PEXPIRE', lock, math.abs(lease))
  return {1}
end

if parked then
  return {1}
elseif not ours or held[3] == digest or call('HEXISTS', lock, 'latchkey:left') == 1 then
  return {0}
end
local failure = lift(KEYS[2], last)
if failure then
  return failure
end
call('HDEL', lock, owner, 'latchkey:hold:' .. owner)
call('HSET', lock, 'mode', 'h' .. last .. ' ' .. digest .. ' ' .. ttl)
call('PEXPIRE', lock, ttl)
return {1}
