-- Ends holds; the last one of a lock frees it, or leaves its dedup window. A free
-- lock is granted to the hold that has waited longest, for a second, and only its process is
-- told, which renews it. It is reserved for that process, which has to take it then, where
-- others have to go first, where it cannot be known whether a message arrives, or where
-- the process waits as such. Ends positions in the queue, too.
-- Sent twice, it counts once.
--
-- KEYS, first [1] of all locks, then [2] of all, then [3]
--   [1]  the lock, a hash; see acquire.lua
--   [2]  the queue of processes that wait; see acquire.lua. Its member "others" has the
--        time at which those outside the queue had their chance, in ms; "polling" that at
--        which the lock was last reserved for those beside it; negative: until when it is
--   [3]  the fencing clock of the lock's hash slot
-- ARGV[1]  PUBLISH or SPUBLISH; publish where a message that reaches no connection of
--          this server may yet reach somebody. Channel redisson_lock__channel:{<lock>}
--          wakes everybody. On redisson_lock__channel:{<lock>}:<process> a process is told
--          that the lock is reserved for it, by the number of ms for which it lets others
--          go first, or that a hold of it was granted the lock:
--          <hold> <token> <clock of Redis in µs>
-- ARGV, of each lock, of all as many
--   either
--   [1]  what the lock's field latchkey:held had at first: its only hold ends, if that
--        brought its owner along and has left no window. The process does not listen.
--   or
--   [1]  owner: the hash field that counts holds; the process where there is no hold
--   [2]  hold: the hash field that marks this one, and ends with the process and a
--        number; '' for the process's position. One that only has a position gives it up
--   [3]  '1' when the work failed: if this is the outermost hold, no dedup window
--   [4]  lifetime of the tombstone in ms, 0 to write none. With one, an
--        acquisition of this hold that arrives later is refused. -1 for a release
--        that is late: then the holds that remain do not get a new lease by it.
--   [5]  the member of the queue with which the process goes on waiting for the lock, '1' when
--        it only listens, else '0'
--   [6]  the last token that the process has given under this lock, when it has passed it on
--        from call to call; '' for the lock's own
--
-- Returns  heard      the lock is free for all; so many connections to this server heard it
--          {0, 0}     there is no such hold
--          {1, left}  ended; left is the number of holds that remain
--          {…, 0, next, time}  and the lock goes to another process, and this one has a
--                     position if it waits: next is 1. time in µs
--          {…, 0, 2, time, yield}  and the lock is reserved for this process, which is to let
--                     others go first for so many ms
--          {2, ttl}   ended; the dedup window lasts ttl ms, as all are told
-- of more than one lock, see batch.lua in package conn
local call = redis.call
local publish = ARGV[1]
local count = #ARGV - 1
local brief = #KEYS == 3 * count

-- The usual case, without a step too many: locks that nobody else has to do with.
if brief and count == 1 then
  local lock = KEYS[1]
  if call('HGET', lock, 'latchkey:held') == ARGV[2] then
    call('DEL', lock)
    return tonumber(redis.pcall(publish, 'redisson_lock__channel:{' .. lock .. '}', '0')) or -1
  end
elseif brief then
  local pcall = redis.pcall
  local ours = true
  for i = 1, count do
    if pcall('HGET', KEYS[i], 'latchkey:held') ~= ARGV[i + 1] then
      ours = false
      break
    end
  end
  if ours then
    call('DEL', unpack(KEYS, 1, count))
    local replies
    for i = 1, count do
      local heard = pcall(publish, 'redisson_lock__channel:{' .. KEYS[i] .. '}', '0')
      if heard ~= 0 and not replies then
        replies = {}
        for j = 1, i - 1 do
          replies[j] = 0
        end
      end
      if replies then
        replies[i] = tonumber(heard) or -1
      end
    end
    return replies or 0
  end
end

local hears = publish ~= 'publish'
count = #KEYS / 3
local process, lock, queue, clock, channel -- those at hand
local listens, member -- what the process says of itself
local grants = hears -- a hold that waits can be granted the lock
local time

local function ms()
  time = time or call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function us()
  time = time or call('TIME')
  return time[1] .. string.sub('00000' .. time[2], -6)
end

-- include next_token

-- Without permission for a channel, which is -1, the waiters find out by polling.
local function tell(to, message)
  return tonumber(redis.pcall(publish, to, message)) or -1
end

-- Says for how many ms the next in the queue is to let those go first who wait outside of
-- it, unless they had their chance just now. A Redisson client takes 00 for a
-- wake-up; we know that it is not meant for us. Where their number is not known, they
-- must not cost much.
local function pause(ms, last)
  local every = hears and 50 or 1000
  if last and last <= ms and ms - last < every then
    return 0
  end
  call('ZADD', queue, ms, 'others')
  local ours = call('ZCOUNT', queue, '1e14', '(1e16')
  local own = tonumber(member and call('ZSCORE', queue, member) or 0)
  if listens and (own < 1e14 or own >= 1e16) then
    ours = ours + 1
  end
  if tell(channel, '00') <= ours and hears then
    return 0
  end
  return 3
end

-- Whom no message reaches, or who did not come when the lock was reserved for it, waits
-- beside the queue from now on, and is told so when it asks again: it then asks often.
-- For whom nobody has subscribed, since 2e16, is the first again as soon as it asks and has.
local function set_aside(who, since)
  call('ZADD', queue, string.format('%.0f', since + us()), who)
  call('ZADD', queue, 'NX', ms() - 250, 'polling')
end

-- The process that has waited longest, when those outside had their chance, and until
-- when the lock is, or when it was last, reserved for those beside the queue.
local function first_in_queue()
  local others, polling
  while true do
    local head = call('ZRANGE', queue, 0, 2, 'WITHSCORES')
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
    set_aside(first[1], 3e16)
  end
end

-- Reserves the lock for those who wait beside the queue, for 250 of every 650 ms or until
-- all have had it: they ask often enough to come meanwhile. ended is when it was last so,
-- negative: when it will have been. at_once: there is no other way to let others go first.
local function reserve_for_polling(ms, ended, at_once)
  local us = us()
  call('ZREMRANGEBYSCORE', queue, '3e16', string.format('(%.0f', 3e16 + us - 2e6)) -- dead
  call('ZREMRANGEBYSCORE', queue, '2e16', string.format('(%.0f', 2e16 + us - 2e6))
  local asking = call('ZCOUNT', queue, string.format('%.0f', 1e16 + us - 5e5), '(2e16') > 0
  if ended < 0 then
    local rest = -ended - ms
    if asking and rest > 0 and rest <= 250 then
      return true
    end
    call('ZADD', queue, ms, 'polling')
    return false
  end
  local since = ms - ended -- negative when the clock was set back
  if asking and (at_once or since < 0 or since >= 400) then
    call('ZADD', queue, -(ms + 250), 'polling')
    return true
  end
  if since < 0 or since > 5000 then
    call('ZREM', queue, 'polling')
    call('ZREMRANGEBYSCORE', queue, '1e16', string.format('(%.0f', 1e16 + us - 2e6))
  end
  return false
end

local function process_of(who)
  return string.match(who, '^latchkey:hold:(.*):') or who
end

-- Says whether a message surely reaches a process. What PUBLISH returns would come too
-- late: connections to a replica, which it does not count, hear the message as well, and a
-- lock that somebody may have heard of cannot be taken back.
local function hears_grant(who)
  local heard = redis.pcall('PUBSUB', publish == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', channel .. ':' .. who)
  return type(heard) == 'table' and (tonumber(heard[2]) or 0) > 0
end

-- Gives the lock to a hold that waits, for a second, and tells its process. The hold stays
-- in the queue until its release: one that never hears of it is set aside by then.
local function grant(hold)
  local token = next_token(clock, us())
  call('HSET', lock, string.sub(hold, 15), '1', hold, '1', 'latchkey:token', token, 'latchkey:lease', '0',
    'latchkey:queue', '1')
  if redis.pcall('PEXPIRE', lock, 1000) ~= 1 or tell(channel .. ':' .. process_of(hold), hold .. ' ' .. token .. ' ' .. us()) < 0 then
    call('DEL', lock)
    return false
  end
  call('ZADD', queue, -ms(), hold)
  return true
end

-- Gives the lock to the process that has waited longest, or reserves it. Returns next and
-- yield, as above, or 0.
local function next_in_queue()
  local ms = ms()
  local wait, mute
  while true do
    local first, last, polling = first_in_queue()
    if polling and reserve_for_polling(ms, polling, mute) then
      if member then
        call('ZADD', queue, 'NX', us(), member)
      end
      return 1
    end
    if not first or mute then
      return 0
    end
    local other = process_of(first)
    wait = wait or pause(ms, last)
    if other == process then
      call('ZADD', queue, -(ms + 250), first)
      return 2, wait
    end
    local granted = grants and wait == 0 and other ~= first and hears_grant(other) and grant(first)
    local connections = not granted and tell(channel .. ':' .. other, wait)
    if granted or connections > 0 or (connections == 0 and not hears) then
      if not granted then
        call('ZADD', queue, -(ms + 250), first)
      end
      if member then
        call('ZADD', queue, 'NX', us(), member)
      end
      return 1
    end
    set_aside(first, connections == 0 and 2e16 or 3e16)
    mute = connections < 0 -- nobody else can be told either
  end
end

-- Gives up a position, and the lock if it is reserved for it.
local function leave(who, found)
  local position = tonumber(call('ZSCORE', queue, who) or 5e16)
  if position < 5e16 then
    call('ZREM', queue, who)
    if position < 0 and call('EXISTS', lock) == 0 then
      local next, wait = next_in_queue()
      if next > 0 then
        return {found, 0, next, tonumber(us()), wait}
      end
      tell(channel, '0')
    end
  end
  return {found, 0}
end

-- What is left of a dedup window, in ms.
local function rest(keep)
  local till, whole = string.match(keep, '(%d+) (%d+)')
  return math.min(till - ms(), tonumber(whole)) -- the clock may have been set back
end

-- Ends the hold, as the Returns above tell.
local function finish(owner, hold, failed, late)
  if hold == '' then
    return leave(process, 1)
  end

  local held = call('HMGET', lock, hold, owner, 'latchkey:keep', 'latchkey:queue', 'latchkey:held')
  if held[5] and held[2] and hold == 'latchkey:hold:' .. owner then
    held[1] = '1'
  end
  if not held[1] then
    return leave(hold, 0)
  end
  local keep = held[3]
  if held[1] == '1' and failed == '1' then
    keep = false
  end

  if tonumber(held[2]) > 1 then
    local lease = late and -1 or tonumber(call('HGET', lock, 'latchkey:lease') or -1)
    call('HDEL', lock, hold)
    if held[3] and not keep then
      call('HDEL', lock, 'latchkey:keep')
    end
    local left = call('HINCRBY', lock, owner, -1)
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
  local next, wait = 0
  if held[4] then
    call('ZREM', queue, hold)
    next, wait = next_in_queue()
  end
  if next == 0 then
    return tell(channel, '0')
  end
  return {1, 0, next, tonumber(us()), wait}
end

-- The hold that the field latchkey:held has stood for, where the lock has got another
-- form since; nil when the lock is not the one that it belonged to.
local function owner_of(held)
  local fields = call('HGETALL', lock)
  local owner, token
  for i = 1, #fields, 2 do
    if fields[i] == 'latchkey:token' then
      token = fields[i + 1]
    elseif string.sub(fields[i], 1, 9) ~= 'latchkey:' then
      owner = fields[i]
    end
  end
  if token and token == string.match(held, '^%d+') then
    return owner
  end
end

-- Has an acquisition of this hold refused that arrives later. It returns an error.
local function bury(hold, life)
  local us = us()
  local written = redis.pcall('ZADD', queue, string.format('%.0f', 5e16 + us + life * 1000), hold)
  if type(written) == 'table' then
    return written
  end
  call('ZREMRANGEBYSCORE', queue, '5e16', string.format('(%.0f', 5e16 + us))
  if call('PTTL', queue) < tonumber(life) then
    call('PEXPIRE', queue, life)
  end
end

-- No later token of the slot is as small as this one. It returns an error.
local function lift(clock, token)
  local last = call('GET', clock)
  if not last or last < token then
    local written = redis.pcall('SET', clock, token)
    if written.err then
      return written
    end
  end
end

local function each(i)
  lock, queue, clock = KEYS[i], KEYS[count + i], KEYS[2 * count + i]
  channel = 'redisson_lock__channel:{' .. lock .. '}'
  if brief then
    if count > 1 and call('HGET', lock, 'latchkey:held') == ARGV[i + 1] then
      call('DEL', lock)
      return tell(channel, '0')
    end
    local owner = owner_of(ARGV[i + 1])
    if not owner then
      return {0, 0}
    end
    process, listens, member = string.match(owner, '^(.*):'), false, nil
    return finish(owner, 'latchkey:hold:' .. owner, '0', false)
  end

  local owner, hold, failed, void, waits, last = unpack(ARGV, 6 * i - 4, 6 * i + 1)
  process = string.match(hold, '^latchkey:hold:(.*):') or owner
  listens, member = waits ~= '0', nil
  if listens and waits ~= '1' then
    member = waits
    if last ~= '' then
      call('ZREM', queue, member) -- its calls have had the lock: others that came later go first
    end
  end
  -- A Redis that is out of memory refuses to write: its error has this repeated, but the
  -- hold ends.
  local failure
  if last ~= '' then
    failure = lift(clock, last)
  end
  grants = hears and not failure
  local reply = finish(owner, hold, failed, void ~= '0')
  if tonumber(void) > 0 then
    failure = bury(hold, void) or failure
  end
  return failure or reply
end
