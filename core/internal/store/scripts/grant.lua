-- Taking a lock, and granting a free one to the queue.
local OPEN_MS = 3 -- for so long those outside the queue may take it first
local YOUNG = 1e6 -- µs within which a process may still be about to subscribe
local MOST = 100 -- waits that a command passes over, or grants the lock

-- Takes a lock that has room for a form, by the only way there is: whoever has it waits no more. A user
-- who may write hashes but not set expiries must not leave one that never ends. Returns the
-- token; or nil and the error.
local function take(owner, hold, form, lease, more)
  local before, token = mode, next_token()
  local its = {token = token, lease = lease, holds = hold, count = 1, more = more, left = length_of(lease)}
  kind = form == '' and 'x' or string.sub(form, 1, 1)
  if kind == 'h' then
    number = token
  elseif kind == 'i' then
    number = string.format('%.0f', (before == '' and 0 or number) + 1)
  elseif before == '' or its.left < LOOK_MS then
    number = '' -- the cached expiry does not hold any more
  end
  write(owner, its)
  local lasts = prolong(its.left)
  if lasts == 1 then
    call('ZREM', queue, member_of(owner, hold, form))
    mode = mode_of(owner, its)
    return token
  elseif before == '' then
    call('DEL', lock)
  else
    write(owner, nil)
    call('HSET', lock, 'mode', before)
  end
  return nil, lasts
end

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
        tell(told, 'open')
      end
      over = over + 1
    else
      local token = take(owner, hold, form, '0', true)
      if not token then
        return first
      elseif told then
        tell(told, redis.sha1hex(hold) .. ' ' .. token .. ' ' .. now)
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
