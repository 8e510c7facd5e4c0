-- Last step of a release: grants the lock, which is free or has room, to the queue, or frees it for all. A Redis
-- that is out of memory refuses to write: then the lock is free.
-- Uses release.lua, lock.lua, pubsub.lua, queue.lua, tell.lua, time.lua, write.lua. Sets kind, mode, number, reply.
local free, done, next_one = not kind, true, nil
local head = call('ZRANGE', queue, 0, 0, 'WITHSCORES')
if head[1] and tonumber(head[2]) < TOMBSTONE then
  -- include grant
  if ended then
    -- include barging
  end
  if not next_one then
    done, next_one = pcall(grant)
  end
end
if done and next_one then
  reply = waited and reply or {12, hold, 0, tonumber(now)}
elseif free then
  local heard = tell('0') .. hold
  reply = waited and reply or heard
end
