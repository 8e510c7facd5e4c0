-- Takes free locks, or enters locks that the owner already holds. A call that finds a lock
-- busy can wait in the queue: a release then takes the lock for it.
-- Sent twice with the same hold, it counts once.
--
-- KEYS, first [1] of all locks, then [2] of all, then [3]
--   [1]  the lock; see hash.lua
--   [2]  the queue, a sorted set; see queue.lua
--   [3]  the fencing clock of the lock's hash slot; see next_token.lua
-- ARGV, of each lock, of all as many; in brief up to three, or all six:
--   [1]  owner
--   [2]  lease in ms, negative when nobody renews it, which it is not in brief; absent: 30000
--   [3]  how the call waits if the lock is busy: '0' not at all, '1' it hears messages,
--        '2' it polls; absent: '1'
--   [4]  hold; in brief it is the owner
--   [5]  dedup window in ms from now, 0 for none
--   [6]  token of the lock to enter, '' when a free lock will do
--
-- Returns  token     a free lock was taken, for the lease asked for
--          {1, token, lease, ttl, outermost[, 1]}  entered; lease and ttl in ms, lease negative
--                    when nobody renews it; outermost is 1 or 0; a sixth value: the token is
--                    ahead of the clock of Redis
--          {2, ttl, by, time, new}  busy; by is 1 when nothing will lengthen the ttl, 2 in a
--                    dedup window, else 0; time in µs; new is 1 when the queue has not had
--                    this wait before
--          {3}       the lock to enter is gone
--          {4}       this hold was given up before the script arrived
--          {5}       something else has this name: a lock of Redisson's of another kind
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
-- include queue
-- include pass_on

-- What is left of a lease or dedup window in ms. After the clock was set back that would be
-- more than the whole of it. It may be more, too, when the lock has several holds, or had
-- them: Redisson may have given it longer, and so may a window that is earned.
local function rest(lock, whole)
  local ttl = call('PTTL', lock)
  if whole and ttl > whole then
    local fields = call('HGETALL', lock)
    for i = 1, #fields, 2 do
      local field = fields[i]
      if field == 'latchkey:left' or field ~= 'mode' and string.sub(field, 1, 9) ~= 'latchkey:' and fields[i + 1] ~= '1' then
        return ttl
      end
    end
    call('PEXPIRE', lock, whole)
    return whole
  end
  return ttl
end

local function keep(window)
  return string.format('%.0f', now + window * 1000) .. ' ' .. window
end

local function each(i)
  local lock, queue, clock = KEYS[i], KEYS[count + i], KEYS[2 * count + i]
  local owner, lease, waits, hold, window, enter = unpack(ARGV, width * (i - 1) + 1, width * i)
  if brief then
    lease, waits, hold, window, enter = lease or '30000', waits or '1', owner, '0', ''
  end
  local member = member_of(owner, hold)
  local first, others = first_of(queue)
  local score = first and tonumber(call('ZSCORE', queue, member))
  if score and score >= TOMBSTONE then
    return {4}
  end

  local taken
  if call('EXISTS', lock) == 0 then
    if enter ~= '' then
      return {3}
    end
    if others and first ~= member then
      if waits ~= '0' and not score then
        enqueue(queue, member, waits == '2', now)
        return {2, OPEN_MS, 0, tonumber(now), 1}
      end
      taken = pass_on(lock, queue, clock, now, member)
      if taken and taken ~= member then
        return {2, GRANT_MS, 0, tonumber(now), 0}
      end
    end
    if not taken then
      if score then
        call('ZREM', queue, member)
        first, others = first_of(queue)
      end
      local token = next_token(clock, now)
      local further = others or window ~= '0' or owner ~= hold
      local ttl = string.gsub(lease, '^%-', '')
      local failure = take(lock, owner, hold, mode_of(token, lease, further), ttl)
      if failure then
        return failure
      end
      if window ~= '0' then
        call('HSET', lock, 'latchkey:keep', keep(window))
      end
      if token ~= now then
        return {1, token, tonumber(lease), tonumber(ttl), 1, 1}
      end
      return token
    end
  end

  local held = call('HMGET', lock, owner, 'mode', 'latchkey:hold:' .. hold)
  local mode, reentry = held[2], held[3]
  local token, whole, further = read_mode(mode)
  local window_ms = string.match(mode or '', '^w(%d+)$')
  if mode and not token and not window_ms then
    return {5}
  end
  if enter ~= '' and (not held[1] or token ~= enter) then
    return {3}
  end

  if held[1] and not window_ms then
    if score then
      call('ZREM', queue, member)
    end
    if not token then
      -- Redisson took it for this owner: it becomes one of ours as well.
      token, whole = next_token(clock, now), lease
      call('HSET', lock, 'latchkey:left', 'yes')
    elseif whole == '0' then
      if hold ~= owner and reentry ~= 'first' then
        -- A re-entry before the first renewal must not cut short what the holder believes in.
        lease, window = tostring(math.max(math.abs(lease), GRANT_MS)), '0'
      end
      whole = lease
      if window ~= '0' then
        call('HSET', lock, 'latchkey:keep', keep(window))
      end
      call('HSET', lock, 'mode', mode_of(token, whole, true))
      call('PEXPIRE', lock, math.abs(whole))
    end
    local outermost = 1
    if hold ~= owner then
      if not reentry then
        reentry = 'again'
        call('HSET', lock, 'latchkey:hold:' .. hold, reentry, 'mode', mode_of(token, whole, true))
        call('HINCRBY', lock, owner, 1)
      end
      outermost = reentry == 'first' and 1 or 0
    end
    local length = tonumber(whole)
    local ttl = rest(lock, math.abs(length))
    if ttl < length then
      call('PEXPIRE', lock, length)
      ttl = length
    end
    return {1, token, length, ttl, outermost, token > now and 1 or nil}
  end

  local by, new = 0, 0
  if window_ms then
    by, whole = 2, tonumber(window_ms)
  elseif whole == '0' then
    whole = GRANT_MS
  elseif whole then
    whole = tonumber(whole)
    by, whole = whole < 0 and 1 or 0, math.abs(whole)
  end
  if waits ~= '0' then
    new = enqueue(queue, member, waits == '2', now)
    if token and not further then
      call('HSET', lock, 'mode', mode .. '+')
    end
  end
  return {2, rest(lock, whole), by, tonumber(now), new}
end
