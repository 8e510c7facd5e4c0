-- Makes the holder of an exclusive lock one of its sharers, and starts its lease anew, as renew.lua does. Nobody comes between;
-- sharers at the head of the queue are granted the lock. Sent twice, it counts once.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  its queue; see queue.lua
-- KEYS[3]  the fencing clock of its hash slot; see next_token.lua
-- ARGV[1]  owner
-- ARGV[2]  x<token>[ <lease>], see renew_all.lua
-- ARGV[3]  lease in ms; 0 leaves it as it is
-- ARGV[4]  the last token that the process has given under it
--
-- Returns  {10, ARGV[1] .. ARGV[2]}  the owner shares the lock
--          {14, the same}  there are other holds: the lock is exclusive as before
--          {0, the same}   the lock is not ours any more
local call = redis.call
local lock, queue, clock = unpack(KEYS)
local owner, name, lease, last = unpack(ARGV)

-- include time
-- include pubsub
-- include string
-- include lock
-- include write
-- include queue
-- include tell
-- include rest
-- include raise_clock

-- include read
local refused = unwritable() -- also who may not remove a field is refused before anything has changed
if refused or not mine or mine.token ~= string.match(name, '%d+') then
  return refused or {0, owner .. name}
end
local becomes = kind == 'x' and mine.count == 1 and not string.find(mine.holds, ' ', 1, true)
mine.left = math.max(mine.left or rest(length_of(mine.lease), mine.holds), tonumber(lease))
mine.lease = mine.lease == '0' and lease or mine.lease
local failure = becomes and raise_clock(last) or nil
if becomes then
  kind, number = 's', ''
end
failure = failure or prolong(mine.left)
if failure then
  return failure
end
write(owner, mine)
if becomes then
  call('HDEL', lock, owner)
  -- include grant
  pcall(grant)
end
return {kind == 's' and 10 or 14, owner .. name}
