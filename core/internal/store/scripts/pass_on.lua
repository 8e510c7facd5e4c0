-- Taking a lock, and passing a free one on to the queue.
local OPEN_MS = 3 -- for so long those outside the queue may take it first
local YOUNG = 1e6 -- µs within which a process may still be about to subscribe
local MOST = 100 -- waits that a command passes over, or grants the lock

local function channel_of(lock)
  return 'redisson_lock__channel:{' .. lock .. '}'
end

-- The channel of the process of a hold. Who may list channels cannot derive holds from it.
local function process_channel(lock, hold)
  return channel_of(lock) .. ':' .. redis.sha1hex(string.match(hold, '^(.*):'))
end

-- Publishes. -1 is no permission: then waiting calls poll.
local function tell(channel, message)
  return tonumber(redis.pcall(PUBLISH, channel, message)) or -1
end

-- How many connections subscribe to each of some channels; nil where that cannot be known.
-- What PUBLISH returns would come too late: connections to a replica, which it does not
-- count, hear the message as well, and a lock of which somebody may have heard cannot be
-- taken back.
local function subscribers(channels)
  local replies = COUNTS and redis.pcall('PUBSUB', PUBLISH == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', unpack(channels))
  if not replies or replies.err then
    return nil
  end
  local counts = {}
  for i = 1, #replies, 2 do
    counts[replies[i]] = tonumber(replies[i + 1])
  end
  return counts
end

-- Takes a lock that has room, by the only way there is: whoever has it waits no more. A user who may
-- write hashes but not set expiries must not leave one that never ends. Returns the error.
local function take(lock, queue, owner, hold, form, token, lease, further, now)
  local ttl, expiry = length_of(lease), nil
  if form == '' then
    call('HSET', lock, owner, '1', 'mode', mode_of(token, lease, further))
    if owner ~= hold then
      call('HSET', lock, 'latchkey:hold:' .. hold, 'first')
    end
    expiry = redis.pcall('PEXPIRE', lock, ttl)
  else
    local kind = string.sub(form, 1, 1)
    if ttl < LOOK_MS or call('HEXISTS', lock, 'mode') == 0 then
      call('HSET', lock, 'mode', kind)
    end
    write_holder(lock, owner, {left = ttl, lease = lease, token = token, holds = hold}, now)
    expiry = outlast(lock, kind, ttl)
  end
  if expiry == 1 then
    call('ZREM', queue, member_of(owner, hold, form))
    return nil
  elseif form == '' or call('HLEN', lock) == 2 then
    call('DEL', lock)
  else
    call('HDEL', lock, HOLDER .. owner)
  end
  return expiry
end

-- Takes a lock for the first in the queue that hears of it, and tells its process:
-- <SHA-1 of the hold> <token> <clock of Redis in µs>. Who hears one message must not be able
-- to make up the next. One that polls finds out by itself, and so does the one that asks. A
-- process that nobody hears is passed over while it may be about to subscribe; later it is
-- taken out, and asks within a second if it lives: so of the dead each is met once. Then the
-- next ones get it, too, as far as their forms go together.
-- kind is that of the lock, nil when it is free. Returns the asking member if it has got the
-- lock, else the first that has, or is in the way of others; nil when nobody can have it.
local function pass_on(lock, queue, clock, now, kind, asking)
  local first, over, granted = nil, 0, 0
  while over + granted < MOST do
    local next = call('ZRANGE', queue, over, over, 'WITHSCORES')
    local member, score = next[1], tonumber(next[2])
    if not member or score >= TOMBSTONE then
      return first
    end
    local hold, form, owner = parts_of(member)
    local young, room = math.abs(now - score) < YOUNG, has_room(lock, kind, form, now)
    if young and not room then -- as mostly, and whoever hears
      return first or member
    end
    local told = member ~= asking and score % 1 == 0 and process_channel(lock, hold)
    local counts = told and subscribers({told})
    local deaf = counts and counts[told] == 0
    if deaf and not young then
      call('ZREM', queue, member)
    elseif not room then
      return first or member
    elseif deaf or kind and owner ~= hold and read_holder(lock, owner, now) then
      -- An owner that has the lock already enters it by itself: a grant would replace its holder.
      if told and not deaf then
        tell(told, 'open')
      end
      over = over + 1
    else
      local token = next_token(clock, now)
      if take(lock, queue, owner, hold, form, token, '0', true, now) then
        return first
      end
      if told then
        tell(told, redis.sha1hex(hold) .. ' ' .. token .. ' ' .. now)
      end
      if not first or member == asking then
        first = member
      end
      if form == '' then
        return first
      end
      kind, granted = string.sub(form, 1, 1), granted + 1
    end
  end
  return first
end
