-- Ends holds; the last one of a lock frees it, or leaves its dedup window. A free
-- lock goes to the process that has waited longest: only that one is told. Without
-- a hold, it gives up the process's place in the line.
-- Sent twice, it counts once.
--
-- KEYS, of each lock
--   [1]  the lock, a hash
--   [2]  the line of processes that wait; see acquire.lua. Its member "others" has the
--        time at which those outside the line had their chance, in ms; "polling" that at
--        which the lock was last reserved for those beside it; negative: until when it is
--   [3]  tombstone of this hold; of all locks or of none
-- ARGV[1]  PUBLISH or SPUBLISH
-- ARGV[2]  this process
-- ARGV[3]  '1' when a message that reaches no connection of this server reaches nobody
-- ARGV[4]  what wake-up channels begin with: <it>{<lock>} wakes everybody,
--          <it>{<lock>}:<process> tells a process of its turn
-- ARGV, of each lock
--   [1]  owner: the hash field that counts holds
--   [2]  hold: the hash field that marks this one; '' for none
--   [3]  '1' when the work failed: if this is the outermost hold, no dedup window
--   [4]  lifetime of the tombstone in ms, 0 to write none. With one, an
--        acquisition of this hold that arrives later is refused. -1 for a release
--        that is late: then the holds that remain do not get a new lease by it.
--   [5]  '2' when the process goes on waiting for the lock, '1' when it only listens, else '0'
--
-- Returns  heard      the lock is free for all; so many connections to this server heard it
--          {0}        there is no such hold
--          {1, left}  ended; left is the number of holds that remain
--          {1, 0, turn}  and the lock is free. turn is 1: for another process, and this
--                     one stands in line if it waits; 2: for this process
--          {2, ttl}   ended; the dedup window lasts ttl ms, as all are told
-- of more than one lock, see batch.lua in package conn
local call = redis.call
local publish, process, hears, channels = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local count = (#ARGV - 4) / 5
local width = #KEYS / count
local lock, line, channel, presence -- those at hand
local time

local function ms()
  time = time or call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function us()
  time = time or call('TIME')
  return time[1] .. string.sub('00000' .. time[2], -6)
end

-- Without permission for a channel, which is -1, the waiters find out by polling.
local function tell(to, message)
  return tonumber(redis.pcall(publish, to, message)) or -1
end

-- Says for how many ms the next in line is to let those go first who wait outside
-- the line, unless they had their chance just now. A Redisson client takes 00 for a
-- wake-up; we know that it is not meant for us. Where their number is not known, they
-- must not cost much.
local function pause(ms, last)
  local every = 1000
  if hears == '1' then
    every = 50
  end
  if last and last <= ms and ms - last < every then
    return 0
  end
  call('ZADD', line, ms, 'others')
  local ours = call('ZCOUNT', line, '1e14', '(1e16')
  if presence ~= '0' then
    ours = ours + 1
  end
  if tell(channel, '00') <= ours and hears == '1' then
    return 0
  end
  return 3
end

-- Whom no message reaches, or who did not come when it was its turn, waits beside the
-- line from now on, and is told so when it asks again: it then asks often.
local function set_aside(who)
  call('ZADD', line, string.format('%.0f', 3e16 + us()), who)
  call('ZADD', line, 'NX', ms() - 250, 'polling')
end

-- The process that has waited longest, when those outside had their chance, and until
-- when the lock is, or when it was last, reserved for those beside the line.
local function first_in_line()
  local others, polling
  while true do
    local head = call('ZRANGE', line, 0, 2, 'WITHSCORES')
    local first
    for i = 1, #head, 2 do
      local who, score = head[i], tonumber(head[i + 1])
      if who == 'others' then
        others = score
      elseif who == 'polling' then
        polling = score
      else
        first = first or {who, score}
      end
    end
    if not first or first[2] >= 1e16 then
      return nil, others, polling
    end
    if first[2] >= 0 then
      return first[1], others, polling
    end
    set_aside(first[1])
  end
end

-- Reserves the lock for those who wait beside the line, for 250 of every 650 ms or until
-- all have had it: they ask often enough to come meanwhile. ended is when it was last so,
-- negative: when it will have been. at_once: there is no other way to let others go first.
local function reserve_for_polling(ms, ended, at_once)
  local us = us()
  call('ZREMRANGEBYSCORE', line, '3e16', string.format('(%.0f', 3e16 + us - 2e6)) -- dead
  local asking = call('ZCOUNT', line, string.format('%.0f', 1e16 + us - 5e5), '(3e16') > 0
  if ended < 0 then
    local rest = -ended - ms
    if asking and rest > 0 and rest <= 250 then
      return true
    end
    call('ZADD', line, ms, 'polling')
    return false
  end
  local since = ms - ended -- negative when the clock was set back
  if asking and (at_once or since < 0 or since >= 400) then
    call('ZADD', line, -(ms + 250), 'polling')
    return true
  end
  if since < 0 or since > 5000 then
    call('ZREM', line, 'polling')
    call('ZREMRANGEBYSCORE', line, '1e16', string.format('(%.0f', 1e16 + us - 2e6))
  end
  return false
end

-- Reserves the lock for the process that has waited longest, for 250 ms.
local function next_in_line()
  local ms = ms()
  local wait, mute
  while true do
    local first, last, polling = first_in_line()
    if polling and reserve_for_polling(ms, polling, mute) then
      if presence == '2' then
        call('ZADD', line, 'NX', us(), process)
      end
      return 1
    end
    if not first or mute then
      return 0
    end
    if first == process then
      call('ZADD', line, -(ms + 250), first)
      return 2
    end
    wait = wait or pause(ms, last)
    local connections = tell(channel .. ':' .. first, wait)
    if connections > 0 or (connections == 0 and hears ~= '1') then
      call('ZADD', line, -(ms + 250), first)
      if presence == '2' then
        call('ZADD', line, 'NX', us(), process)
      end
      return 1
    end
    set_aside(first)
    mute = connections < 0 -- nobody else can be told either
  end
end

-- What is left of a dedup window, in ms.
local function rest(keep)
  local till, whole = string.match(keep, '(%d+) (%d+)')
  return math.min(till - ms(), tonumber(whole)) -- the clock may have been set back
end

-- Ends the hold, as the Returns above tell.
local function finish(owner, hold, failed, late)
  if hold == '' then
    local place = call('ZSCORE', line, process)
    call('ZREM', line, process)
    if place and tonumber(place) < 0 and call('EXISTS', lock) == 0 and next_in_line() == 0 then
      tell(channel, '0')
    end
    return {1, 0}
  end

  local held = call('HMGET', lock, hold, owner, 'latchkey:keep', 'latchkey:line')
  if not held[1] then
    return {0}
  end
  local keep = held[3]
  if held[1] == '1' and failed == '1' then
    keep = false
  end

  if tonumber(held[2]) > 1 then
    call('HDEL', lock, hold)
    if held[3] and not keep then
      call('HDEL', lock, 'latchkey:keep')
    end
    local left = call('HINCRBY', lock, owner, -1)
    local lease = tonumber(call('HGET', lock, 'latchkey:lease') or '-1')
    if late then
      lease = -1
    end
    if keep and held[1] == '1' and rest(keep) > lease then
      -- Those that remain may never end theirs: the window that is earned must not be
      -- lost with their lease, nor shortened by renewals.
      lease = rest(keep)
      call('HSET', lock, 'latchkey:shared', '1')
    end
    if call('PTTL', lock) < lease then
      call('PEXPIRE', lock, lease)
    end
    return {1, left}
  end

  call('DEL', lock)
  if keep then
    local left = rest(keep)
    if left > 0 then
      call('HSET', lock, 'latchkey:window', left)
      call('PEXPIRE', lock, left)
      if held[4] then
        tell(channel, '0') -- who waits is to learn when it ends
      end
      return {2, left}
    end
  end
  local turn = 0
  if held[4] then
    turn = next_in_line()
  end
  if turn == 0 then
    return tell(channel, '0')
  end
  return {1, 0, turn}
end

local function each(i)
  local owner, hold, failed, void, tombstone
  lock, line, tombstone = unpack(KEYS, width * (i - 1) + 1, width * i)
  owner, hold, failed, void, presence = unpack(ARGV, 5 * i, 5 * i + 4)
  channel = channels .. '{' .. lock .. '}'

  local reply = finish(owner, hold, failed, void ~= '0')
  if tonumber(void) > 0 then
    -- After the release: a Redis that is out of memory refuses to write, and its error
    -- has this repeated.
    local written = redis.pcall('SET', tombstone, '1', 'PX', void)
    if written.err then
      return written
    end
  end
  return reply
end
