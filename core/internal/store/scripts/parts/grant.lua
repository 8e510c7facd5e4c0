-- Grants a lock that has room to who waits.
-- Uses call, clock, lock, now, queue; lock.lua, pubsub.lua, queue.lua, tell.lua, write.lua. Sets kind, mode, number.
local YOUNG = 1e6 -- µs within which a process may still be about to subscribe
local MOST = 100 -- entries that a command passes over, or grants the lock
-- include subscribers
-- include holders
-- include room
-- include next_token
-- include take

-- Says whether the process of an entry can notice a grant: it is subscribed to its channel, as far as is known; or it has none, for it
-- polls, and has not stopped.
local function can_notice(member, channel)
  if channel then
    local counts = subscribers({channel})
    return not counts or counts[channel] ~= 0
  end
  return (tonumber(call('ZSCORE', queue, '!' .. member)) or 0) >= TOMBSTONE + now
end

-- Grants a lock that has room to the first entry that can notice. One whose process should be subscribed and is not
-- is passed over while it is young. Later it is removed: if its process lives, that asks within a second; if not, no
-- later release meets it. So is one that polls and has not asked for long. The next entries get the lock as well, while
-- there is room for their forms.
-- Returns an entry: the asking one if it was granted the lock; else the first that was; else the first that waits
-- for room. nil: nobody in the queue can notice a grant, so the caller may take the lock.
-- On return kind, mode and number are those of the lock as it is then.
local function grant(asking)
  local first, over, granted = nil, 0, 0
  while over + granted < MOST do
    local found = call('ZRANGE', queue, over, over, 'WITHSCORES')
    local member, score = found[1], tonumber(found[2])
    if not member or score >= TOMBSTONE then
      return first
    end
    local hold, form, owner = parts_of(member)
    local young, room = math.abs(now - score) < YOUNG, makes_room(form)
    -- Mostly the lock is full: a young entry keeps its place, subscribed or not, so subscribers need not be counted.
    if young and not room then
      return first or member
    end
    local asks, polls = member == asking, score % 1 > 0
    local channel = not asks and not polls and process_channel(hold)
    local notices = asks or can_notice(member, channel) -- a call that is asking reads the reply
    if not notices and (polls or not young) then
      call('ZREM', queue, member, '!' .. member)
    elseif not room then
      return first or member
    elseif not notices or kind and owner ~= hold and parse_holder(call('HGET', lock, HOLDER .. owner)) then
      -- An owner that has the lock already enters it by itself when it asks next: a grant would replace its holder.
      if notices and channel then
        tell('open', channel)
      end
      over = over + 1
    else
      local its = take(owner, hold, form, '0', true)
      if not its then
        return first
      end
      call('ZREM', queue, member, '!' .. member)
      if channel then -- the digest of the hold, for who reads one message must not make up the next
        tell(redis.sha1hex(hold) .. ' ' .. its.token .. ' ' .. now, channel)
      end
      if not first or asks then
        first = member
      end
      if form == '' then
        return first
      end
      granted = granted + 1
    end
  end
  return first
end
