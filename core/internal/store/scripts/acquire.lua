-- Takes free locks, or enters those that the owner already holds. When one is busy,
-- the process can take a position in the queue: a release then grants it the lock.
-- Sent twice with the same hold, it counts once.
--
-- KEYS, first [1] of all locks, then [2] of all, then [3]
--   [1]  the lock, a hash. Besides the owner's field, which counts holds, it has one of
--        these forms:
--          latchkey:held   its token, and after a space its lease in ms unless that is
--                          30000. There is one hold, which brought its owner along; it
--                          leaves no window, and nobody is known to wait
--          latchkey:token, latchkey:lease (negative when fixed, 0 when a release has
--                          granted the lock and it was not renewed yet), latchkey:hold:… for
--                          each hold, and as needed latchkey:keep, latchkey:queue,
--                          latchkey:shared
--          latchkey:window alone: a dedup window
--   [2]  the queue, a sorted set of processes that wait. A member is the hold with which
--        its process asks, and to which the lock can be granted; or the process.
--        Score: since when it waits, in µs; from 1e16 on: no message reaches it, and it
--        asked at 1e16 and so many µs, or did not ask since 3e16 and so many, or since 2e16
--        and so many, when it had not subscribed; negative: the
--        lock is reserved for it until then, in ms, or was granted to it then. For the members "others" and "polling"
--        see release.lua. From 5e16 on: a tombstone, the hold of an acquisition that was
--        given up; it may go at 5e16 and so many µs
--   [3]  the fencing clock of the lock's hash slot: the last token given there
-- ARGV, of each lock, of all as many
--   [1]  owner: the hash field that counts holds
--   [2]  lease in ms, negative when it is fixed (nobody renews it); absent: 30000
--   [3]  how the process queues if the lock is busy. '0': not at all; '1': as the process;
--        '2', or absent: with this hold
--   [4]  hold: the hash field that marks this one; 1 for the outermost, 0 for a re-entry.
--        It ends with the process and a number. Absent, with all that follow: the
--        owner's own, latchkey:hold:<owner>; the lease is not fixed then
--   [5]  dedup window in ms from now, 0 for none
--   [6]  token of the lock to enter, '' when a free lock will do
--
-- Returns  token            a free lock was taken, for the lease asked for
--          {1, token, lease, ttl, outermost}  entered; lease and ttl in ms, lease negative when fixed
--          {1, token, lease, ttl, outermost, 1}  the same, with a token that is ahead of the
--                           clock of Redis
--          {2, ttl, by, time, unheard}  busy; by is 1 when nothing will lengthen the ttl, 2 when
--                           nobody holds it, but its dedup window lasts, else 0; unheard is 1 when
--                           messages do not reach the process; time in µs
--          {3}              the lock to enter is gone
--          {4}              this hold was given up before the script arrived
-- of more than one lock, see batch.lua in package conn
local call = redis.call
local count = #KEYS / 3
local width = #ARGV / count
local time = call('TIME')
local us = time[2]
if #us < 6 then
  us = string.sub('00000' .. us, -6)
end
local now = time[1] .. us -- µs. 16 digits until the year 2286, so that tokens compare as text

-- The usual case, without a step too many: free locks, for which nobody waits.
if width < 4 and count == 1 then
  local lock, lease = KEYS[1], ARGV[2] or '30000'
  if call('EXISTS', lock, KEYS[2]) == 0 then
    local last = call('GETSET', KEYS[3], now)
    if last and last >= now then
      call('SET', KEYS[3], last) -- ahead of the clock of Redis: below
    else
      call('HSET', lock, ARGV[1], '1', 'latchkey:held', lease == '30000' and now or now .. ' ' .. lease)
      if redis.pcall('PEXPIRE', lock, lease) == 1 then
        return now
      end
      call('DEL', lock) -- and find out why, below
    end
  end
elseif width < 4 and call('EXISTS', unpack(KEYS, 1, 2 * count)) == 0 then
  local ahead = false
  local clocks = {}
  local tokens = call('MGET', unpack(KEYS, 2 * count + 1))
  for i = 1, count do
    local last = tokens[i]
    if last and last >= now then
      ahead = true
    end
    clocks[2 * i - 1], clocks[2 * i] = KEYS[2 * count + i], now
  end
  if not ahead then
    call('MSET', unpack(clocks))
    local pcall = redis.pcall
    local taken = 0
    for i = 1, count do
      local lock, lease = KEYS[i], width > 1 and ARGV[width * (i - 1) + 2] or '30000'
      local held = lease == '30000' and now or now .. ' ' .. lease
      -- Two fields, unless the command names a lock twice.
      if pcall('HSET', lock, ARGV[width * (i - 1) + 1], '1', 'latchkey:held', held) ~= 2
        or pcall('PEXPIRE', lock, lease) ~= 1 then
        break
      end
      taken = i
    end
    if taken == count then
      return now
    end
    call('DEL', unpack(KEYS, 1, taken + 1))
  end
end

local member -- of the queue, by which the process waits; nil if it does not

local function ms()
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- include next_token

-- Says whether the process that waits has subscribed to its messages.
local function has_subscribed(lock)
  local channel = 'redisson_lock__channel:{' .. lock .. '}:' .. (string.match(member, '^latchkey:hold:(.*):') or member)
  for _, kind in ipairs({'NUMSUB', 'SHARDNUMSUB'}) do
    local heard = redis.pcall('PUBSUB', kind, channel)
    if type(heard) == 'table' and (tonumber(heard[2]) or 0) > 0 then
      return true
    end
  end
  return false
end

-- The process keeps its position if it has one; if the lock was reserved for it, somebody
-- outside the queue was faster, and it stays first. So does one that was passed over because
-- it had just come. Who waits asks every second. Returns 1 when messages do not reach the
-- process.
local function enqueue(lock, queue)
  if not member then
    return 0
  end
  local unheard = 0
  if call('ZADD', queue, 'NX', now, member) == 0 then
    local position = tonumber(call('ZSCORE', queue, member))
    local aside = position >= 3e16 and 3e16 or position >= 2e16 and 2e16
    local long = aside and aside + now - position > 15e4
    if position < 0 or aside == 2e16 and has_subscribed(lock) then
      call('ZADD', queue, '100000000000000.5', member)
    elseif position >= 1e16 and (long or aside ~= 2e16) then
      if long then
        call('ZADD', queue, 'XX', 'LT', 0, 'polling') -- it did not know, and has waited
      end
      call('ZADD', queue, string.format('%.0f', 1e16 + now), member)
      unheard = 1
    end
  end
  if call('PTTL', queue) < 4000 then
    call('PEXPIRE', queue, 5000)
  end
  return unheard
end

-- For how many ms the lock is reserved for others than this process. That lasts
-- 250 ms; what is left of it may be more when the clock was set back.
local function reserved(queue, first, until_ms)
  if first == member or member and first == 'polling' and tonumber(call('ZSCORE', queue, member) or 0) >= 1e16 then
    return 0
  end
  local left = until_ms - ms()
  if left > 250 then
    return 0
  end
  return left
end

-- What is left of a lock's lease or window in ms, and never more than the whole of it:
-- after the clock was set back it would be. shared: a Redisson client may have given it
-- a longer lease.
local function rest(lock, whole, shared)
  local ttl = call('PTTL', lock)
  whole = whole and math.abs(whole)
  if whole and ttl > whole and not shared then
    call('PEXPIRE', lock, whole)
    return whole
  end
  return ttl
end

-- Gives a lock the form in which it can have more holds, and others that wait.
local function unpack_held(lock, token, lease)
  for _, field in ipairs(call('HKEYS', lock)) do
    if string.sub(field, 1, 9) ~= 'latchkey:' then
      call('HSET', lock, 'latchkey:hold:' .. field, '1', 'latchkey:token', token, 'latchkey:lease', lease)
    end
  end
  call('HDEL', lock, 'latchkey:held')
end

local function each(i)
  local lock, queue, clock = KEYS[i], KEYS[count + i], KEYS[2 * count + i]
  local owner, lease, queues, hold, window, enter = unpack(ARGV, width * (i - 1) + 1, width * i)
  local own = 'latchkey:hold:' .. owner
  lease, queues, hold, window, enter = lease or '30000', queues or '2', hold or own, window or '0', enter or ''
  member = queues == '2' and hold or queues == '1' and string.match(hold, '^latchkey:hold:(.*):') or nil

  local first = call('ZRANGE', queue, 0, 0, 'WITHSCORES')
  local position = first[1] and call('ZSCORE', queue, hold)
  if position and tonumber(position) >= 5e16 then
    return {4}
  end
  local others = first[1] and tonumber(first[2]) < 5e16

  if call('EXISTS', lock) == 0 then
    if enter ~= '' then
      return {3}
    end
    if others then
      if tonumber(first[2]) < 0 then
        local left = reserved(queue, first[1], -first[2])
        if left > 0 then
          return {2, left, 0, tonumber(now), enqueue(lock, queue)}
        end
      end
      if member then
        call('ZREM', queue, member)
      end
    end
    local token = next_token(clock, now)
    local ttl = string.gsub(lease, '^%-', '')
    if ttl == lease and window == '0' and hold == own and not others then
      call('HSET', lock, owner, '1', 'latchkey:held', lease == '30000' and token or token .. ' ' .. lease)
    else
      call('HSET', lock, owner, '1', hold, '1', 'latchkey:token', token, 'latchkey:lease', lease)
      if others then
        call('HSET', lock, 'latchkey:queue', '1')
      end
      if hold ~= own then
        call('HSET', lock, 'latchkey:shared', '1') -- others may enter by that owner, Redisson too
      end
      if window ~= '0' then
        call('HSET', lock, 'latchkey:keep', string.format('%.0f', ms() + window) .. ' ' .. window)
      end
    end
    -- A user who may write hashes but not set expiries must not leave a lock that never ends.
    local expiry = redis.pcall('PEXPIRE', lock, ttl)
    if expiry ~= 1 then
      call('DEL', lock)
      return expiry
    end
    if token ~= now then
      return {1, token, tonumber(lease), tonumber(ttl), 1, 1}
    end
    return token
  end

  local held = call('HMGET', lock, owner, 'latchkey:token', 'latchkey:lease', 'latchkey:window', 'latchkey:queue',
    'latchkey:shared', 'latchkey:held')
  local token, whole, shared = held[2], held[3], held[6]
  if held[7] then
    token, whole = string.match(held[7], '^(%d+) ?(%d*)')
    if whole == '' then
      whole = '30000'
    end
  end
  if held[1] then
    if enter ~= '' and token ~= enter then
      return {3}
    end
    if whole == '0' then
      lease = string.gsub(lease, '^%-', '')
      if hold == own then
        call('HSET', lock, 'latchkey:lease', lease)
      else
        call('HSET', lock, 'latchkey:shared', '1') -- its lease may be another than the one that follows the grant
        shared = '1'
      end
    elseif token then
      lease = whole
      if held[7] and hold ~= own then
        unpack_held(lock, token, lease)
      end
    else
      -- Redisson took it for this owner: it becomes one of ours as well.
      token = next_token(clock, now)
      shared = '1'
      call('HSET', lock, 'latchkey:token', token, 'latchkey:lease', lease, 'latchkey:shared', shared)
    end
    local outermost = 1
    if not held[7] or hold ~= own then
      if call('HSETNX', lock, hold, 0) == 1 then
        call('HINCRBY', lock, owner, 1)
      end
      outermost = tonumber(call('HGET', lock, hold))
    end
    lease = tonumber(lease)
    local ttl = rest(lock, lease, shared)
    if ttl < lease then
      call('PEXPIRE', lock, lease)
      ttl = lease
    end
    return {1, token, lease, ttl, outermost, token > now and 1 or nil}
  end

  if enter ~= '' then
    return {3}
  end
  if whole == '0' then
    whole = '1000'
  end
  local by = 0
  if held[4] then
    by = 2
  elseif whole and tonumber(whole) < 0 then
    by = 1
  end
  local unheard = 0
  if member and not held[4] then
    unheard = enqueue(lock, queue)
    if held[7] then
      unpack_held(lock, token, whole)
    end
    if not held[5] then
      call('HSET', lock, 'latchkey:queue', '1')
    end
  end
  return {2, rest(lock, tonumber(held[4] or whole), shared), by, tonumber(now), unheard}
end
