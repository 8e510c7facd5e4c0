-- A copy of a command that finds its work done, by another copy on another connection, writes
-- as well, without a change: WAIT vouches for what came before the last write of its own
-- connection, and on newer servers for nothing else.
local function touch(lock)
  local ttl = call('PTTL', lock)
  if ttl > 0 then
    call('PEXPIRE', lock, ttl)
  end
end
