-- Grants a lock that has room to who waits.
-- Uses call, clock, lock, now, queue; lock.lua, pubsub.lua, queue.lua, tell.lua, write.lua. Sets kind, mode, number.
local YOUNG = 1e6 -- µs within which a process may still be about to subscribe
local MOST = 100 -- entries that a command passes over, or grants the lock
-- include subscribers
-- include holders
-- include room
-- include next_token
-- include take

-- Says whether a grant can be noticed: the process of the entry is subscribed, as far as is known; or it polls, and has
-- not stopped. A call that is asking reads the reply.
local function can_notice(entry)
  if entry.channel then
    local counts = subscribers({entry.channel})
    return not counts or counts[entry.channel] ~= 0
  end
  return entry.asking or (tonumber(call('ZSCORE', queue, '!' .. entry.member)) or 0) >= TOMBSTONE + now
end

-- Takes an entry that was granted the lock out of the queue, and tells its process, unless that polls or is asking.
-- The message has the digest of the hold: who reads one message cannot make up the next.
local function announce(entry, token)
  call('ZREM', queue, entry.member, '!' .. entry.member)
  if entry.channel then
    tell(redis.sha1hex(entry.hold) .. ' ' .. token .. ' ' .. now, entry.channel)
  end
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
    local next = call('ZRANGE', queue, over, over, 'WITHSCORES')
    local member, score = next[1], tonumber(next[2])
    if not member or score >= TOMBSTONE then
      return first
    end
    local hold, form, owner = parts_of(member)
    local young, room = math.abs(now - score) < YOUNG, makes_room(form)
    -- Mostly the lock is full: a young entry keeps its place, subscribed or not, so subscribers need not be counted.
    if young and not room then
      return first or member
    end
    local entry = {member = member, hold = hold, asking = member == asking, polls = score % 1 > 0}
    entry.channel = not entry.asking and not entry.polls and process_channel(hold)
    local notices = can_notice(entry)
    if not notices and (entry.polls or not young) then
      call('ZREM', queue, member, '!' .. member)
    elseif not room then
      return first or member
    elseif not notices or kind and owner ~= hold and parse_holder(call('HGET', lock, HOLDER .. owner)) then
      -- An owner that has the lock already enters it by itself when it asks next: a grant would replace its holder.
      if notices and entry.channel then
        tell('open', entry.channel)
      end
      over = over + 1
    else
      local its = take(owner, hold, form, '0', true)
      if not its then
        return first
      end
      announce(entry, its.token)
      if not first or entry.asking then
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
