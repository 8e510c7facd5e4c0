-- Starts the lease of a lock anew, and never shortens one that a Redisson client may have given. Instead
-- it can raise the lock's token, as a quorum has to.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  the fencing clock of its hash slot, to raise the token
-- ARGV[1]  owner
-- ARGV[2]  token of the acquisition; of a renewal x<token>[ <lease>], see renew_all.lua
-- ARGV[3]  lease in ms; 0 leaves it as it is
-- ARGV[4]  absent; first: the lock was granted, and no renewal was answered yet; raise: to raise the token
-- ARGV[5]  to raise the token: the new one
--
-- Returns  {10, ARGV[1] .. ARGV[2]}  done
--          {0, ARGV[1] .. ARGV[2]}   the lock is not ours any more
local call, lock, clock = redis.call, KEYS[1], KEYS[2]
local owner, token, lease, how, raised = ARGV[1], string.match(ARGV[2], '%d+'), ARGV[3], ARGV[4], ARGV[5]

-- The fast path, before any function is made: an exclusive lock.
if how ~= 'raise' then
  local found = redis.pcall('HMGET', lock, owner, 'mode')
  local its, holds, more = string.match(found[2] or '', '^x(%d+) ?%-?%d*(.-)(%+?)$')
  if found[1] and its == token then
    local alone = found[1] == '1' and more == ''
    call('PEXPIRE', lock, alone and lease or math.max(call('PTTL', lock), lease))
    if how then
      call('HSET', lock, 'mode', 'x' .. token .. ' ' .. lease .. holds .. '+')
    end
    return {10, owner .. ARGV[2]}
  end
end

-- include time
-- include string
-- include lock
-- include write

-- include read
if not mine or mine.token ~= token then
  return unwritable() or {0, owner .. ARGV[2]}
end
mine.left = tonumber(lease)
local failure = prolong(math.max(kind == 'x' and call('PTTL', lock) or 0, mine.left))
if failure then
  return failure
end
mine.lease = how == 'first' and lease or mine.lease
mine.token = raised or token
write(owner, mine)
-- include raise_clock
return how == 'raise' and raise_clock(raised) or {10, owner .. ARGV[2]}
