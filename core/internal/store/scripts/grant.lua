local YOUNG = 1e6 -- µs within which a process may still be about to subscribe
local MOST = 100 -- waits that a command passes over, or grants the lock

-- Grants a lock that has room to the first in the queue whose process is subscribed, and tells it.
-- Who hears one message must not be able to make up the next. One that polls finds out
-- by itself, and so does the one that asks. A process that is not subscribed is passed over while it
-- may be about to subscribe; later it is taken out, and asks within a second if it lives: so
-- of the dead each is met once. Then the next ones get it, too, as far as their forms
-- go together.
-- Returns the asking member if it has got the lock, else the first that has, or is in the
-- way of others; nil when nobody can have it.
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
    if young and not room then -- as mostly, and whoever is subscribed
      return first or member
    end
    local told = member ~= asking and score % 1 == 0 and process_channel(hold)
    local counts = told and subscribers({told})
    local deaf = counts and counts[told] == 0
    if deaf and not young then
      call('ZREM', queue, member)
    elseif not room then
      return first or member
    elseif deaf or kind and owner ~= hold and parse_holder(call('HGET', lock, HOLDER .. owner)) then
      -- An owner that has the lock already enters it by itself: a grant would replace its holder.
      if told and not deaf then
        tell('open', told)
      end
      over = over + 1
    else
      local token = take(owner, hold, form, '0', true)
      if not token then
        return first
      elseif told then
        tell(redis.sha1hex(hold) .. ' ' .. token .. ' ' .. now, told)
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
