-- Takes free locks, or enters locks that the owner already holds. A call that finds a lock
-- busy can wait in the queue: a release then takes the lock for it.
-- Sent twice with the same hold, it counts once.
--
-- KEYS, first [1] of all locks, then [2] of all, then [3]
--   [1]  the lock; see hash.lua, holders.lua
--   [2]  the queue, a sorted set; see queue.lua
--   [3]  the fencing clock of the lock's hash slot; see next_token.lua
-- ARGV, of each lock, of all as many; in brief up to three, or six, or all:
--   [1]  owner
--   [2]  lease in ms, negative when nobody renews it, which it is not in brief; absent: 30000
--   [3]  how the call waits if the lock is busy: '0' not at all, '1' it hears messages,
--        '2' it polls; absent: '1'
--   [4]  hold; in brief it is the owner
--   [5]  dedup window in ms from now, 0 for none
--   [6]  token of the lock to enter, '' when a free lock will do
--   [7]  form, see holders.lua; absent: exclusive
--
-- Returns  token     a free lock was taken, for the lease asked for
--          {1, token, lease, ttl, outermost[, 1]}  entered; lease and ttl in ms, lease negative
--                    when nobody renews it; outermost is 1 or 0; a sixth value: the token is
--                    ahead of the clock of Redis
--          {2, ttl, by, time, new}  busy; by is 1 when nothing will lengthen the ttl, 2 in a
--                    dedup window, 3 when it was handed over, else 0; time in µs; new is 1 when the
--                    queue has not had this wait before
--          {3}       the lock to enter is gone
--          {4}       this hold was given up before the script arrived
--          {5}       something else has this name: a lock of Redisson's of another kind
--          {6}       the owner has it in a form that does not include this one
-- of more than one lock, see batch.lua in package conn
local call = redis.call
local count = #KEYS / 3
local width = #ARGV / count
local brief = width < 4
local time = call('TIME')
local us = time[2]
if #us < 6 then
  us = string.sub('00000' .. us, -6)
end
local now = time[1] .. us -- µs. 16 digits until the year 2286, so that tokens compare as text

-- include take_free
-- include pubsub
-- include next_token
-- include hash
-- include holders
-- include queue
-- include pass_on

-- What a lock says of an owner and a hold; nil when it is free.
local function look(lock, owner, hold)
  local held = call('HMGET', lock, owner, 'mode', 'latchkey:hold:' .. hold, HOLDER .. owner)
  if not held[2] and call('EXISTS', lock) == 0 then
    return nil
  end
  local kind = kind_of(held[2])
  return held, kind, kind and parse_holder(held[4], now)
end

-- include touch
-- include enter

local function each(i)
  local lock, queue, clock = KEYS[i], KEYS[count + i], KEYS[2 * count + i]
  local owner, lease, waits, hold, window, enter, form = unpack(ARGV, width * (i - 1) + 1, width * i)
  if brief then
    lease, waits, hold, window, enter = lease or '30000', waits or '1', owner, '0', ''
  end
  form = form or ''
  local member = member_of(owner, hold, form)
  local first, others = first_of(queue)
  local score = first and tonumber(call('ZSCORE', queue, member))
  if score and score >= TOMBSTONE then
    return {4}
  end
  local new = 0

  local held, kind, holder = look(lock, owner, hold)
  if enter ~= '' and not held then
    return {3}
  end
  if not held or kind and not holder and enter == '' and has_room(lock, kind, form, now) then
    local taken
    if others and (first ~= member or form ~= '') then
      if waits ~= '0' and not score then
        new = enqueue(queue, member, score, waits == '2', now)
        if not held then
          return {2, OPEN_MS, 0, tonumber(now), new}
        end
      end
      taken = pass_on(lock, queue, clock, now, kind, member)
      if taken and taken ~= member then
        return {2, GRANT_MS, 0, tonumber(now), new}
      end
    end
    if not taken then
      local token = next_token(clock, now)
      local failure = take(lock, queue, owner, hold, form, token, lease, others or window ~= '0' or owner ~= hold, now)
      if failure then
        return failure
      end
      if window ~= '0' then
        call('HSET', lock, 'latchkey:keep', keep(window, now))
      end
      if token ~= now then
        return {1, token, tonumber(lease), math.abs(lease), 1, 1}
      end
      return token
    end
    held, kind, holder = look(lock, owner, hold)
  end

  local mode, reentry = held[2], held[3]
  local token, whole, further = read_mode(mode)
  if holder then
    token = holder.token
  end
  local window_ms = string.match(mode or '', '^w(%d+)')
  if mode and not token and not window_ms and not kind then
    return {5}
  end
  if enter ~= '' and (not (held[1] or holder) or token ~= enter) then
    return {3}
  end

  if holder or held[1] and not window_ms then
    if score then
      call('ZREM', queue, member)
    end
    if not holder then
      return enter_held(lock, clock, owner, hold, lease, window, held)
    elseif not lasts(kind) and kind ~= string.sub(form, 1, 1) then
      return {6}
    end
    return enter_holder(lock, owner, hold, mode, lease, holder)
  end

  local by = 0
  if kind == 'h' then
    by, whole = 3, parked_for(lock, mode, now)
  elseif window_ms then
    by, whole = 2, tonumber(window_ms)
  elseif whole == '0' then
    whole = GRANT_MS
  elseif whole then
    whole = tonumber(whole)
    by, whole = whole < 0 and 1 or 0, math.abs(whole)
  end
  if waits ~= '0' and new == 0 then
    new = enqueue(queue, member, score, waits == '2', now)
    if token and not further then
      call('HSET', lock, 'mode', mode .. '+')
    end
  end
  return {2, rest(lock, whole), by, tonumber(now), new}
end
