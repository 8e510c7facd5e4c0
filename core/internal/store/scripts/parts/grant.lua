-- Uses call, lock, queue, now; kind of lock.lua, and its functions; take.lua, queue.lua, room.lua, tell.lua,
-- subscribers.lua.
local YOUNG = 1e6 -- µs within which a process may still be about to subscribe
local MOST = 100 -- entries that a command passes over, or grants the lock

-- Grants a lock that has room to the first entry that can notice: its process is subscribed, which is
-- told; or it polls, or is asking, and gets no message. An entry whose process should be subscribed
-- and is not is passed over while it is young. Later it is removed: if its process lives, that asks
-- within a second; if not, no later release meets it. So is one that polls and has not asked for long. The next entries get the lock as well, while there
-- is room for their forms.
-- A message has the digest of the hold: who reads one message cannot make up the next.
-- Returns an entry: the asking one if it was granted the lock; else the first that was; else the first that waits
-- for room. nil: nobody in the queue can notice a grant, so the caller may take the lock.
-- On return kind, mode and number are those of the lock as it is then.
local function grant(asking)
  local first, over, granted = nil, 0, 0
  while over + granted < MOST do
    local next = call('ZRANGE', queue, over, over, 'WITHSCORES')
    local member, score = next[1], tonumber(next[2])
    if not member or score >= TOMBSTONE then
      return first
    end
    local hold, form, owner = parts_of(member)
    local young, room = math.abs(now - score) < YOUNG, makes_room(form)
    -- The usual case, a full lock: a young entry keeps its place, subscribed or not, so subscribers need not be counted.
    if young and not room then
      return first or member
    end
    local channel = member ~= asking and score % 1 == 0 and process_channel(hold)
    local counts = channel and subscribers({channel})
    local unsubscribed = counts and counts[channel] == 0
    local silent = member ~= asking and score % 1 > 0 and (tonumber(call('ZSCORE', queue, '!' .. member)) or 0) < TOMBSTONE + now
    if unsubscribed and not young or silent then
      call('ZREM', queue, member, '!' .. member)
    elseif not room then
      return first or member
    elseif unsubscribed or kind and owner ~= hold and parse_holder(call('HGET', lock, HOLDER .. owner)) then
      -- An owner that has the lock already enters it by itself when it asks next: a grant would replace its holder.
      if channel and not unsubscribed then
        tell('open', channel)
      end
      over = over + 1
    else
      local token = take(owner, hold, form, '0', true)
      if not token then
        return first
      end
      call('ZREM', queue, member, '!' .. member)
      if channel then
        tell(redis.sha1hex(hold) .. ' ' .. token .. ' ' .. now, channel)
      end
      if not first or member == asking then
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
