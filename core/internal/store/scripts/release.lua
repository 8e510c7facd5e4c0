-- Ends holds, wherever they are: in the lock, in the queue, or not yet arrived. The last
-- hold of a lock frees it, or opens its dedup window. A free lock is passed on to the queue.
-- An attempt at a request that counts once ends with its answer, which later attempts get.
-- Sent twice, it counts once.
--
-- KEYS, first [1] of all locks, then [2] of all, then [3]
--   [1]  the lock; see hash.lua, holders.lua
--   [2]  the queue, a sorted set; see queue.lua
--   [3]  the fencing clock of the lock's hash slot
-- ARGV, of each lock, of all as many. Brief, two:
--   [1]  owner, which is the hold to end
--   [2]  the field mode that the lock has when nobody else has to do with it
-- or in full:
--   [1]  owner
--   [2]  hold
--   [3]  '1' when the work failed: the outermost hold leaves no dedup window
--   [4]  '1' when the release is late: the holds that remain get no new lease by it
--   [5]  lifetime of a tombstone in ms; 0: none, no acquisition of this hold can arrive later
--   [6]  the hold with which the process goes on waiting for the lock, as a member of the
--        queue; '' when it does not
--   [7]  the last token that the process has given under this lock, when it has passed it
--        on in memory; '' for the lock's own
--   [8]  form, see holders.lua; absent: exclusive
--   [9]  for how long the answer to the request is kept, in ms; absent: there is none
--   [10] that answer
--
-- Messages   0            to all: the lock is free
--            00           to all: it is free for those outside the queue. Redisson takes
--                         that for a 0
--            open         to the process of the first wait that hears messages: the same
--            <SHA-1 of a hold> …  to one process: see pass_on.lua
--
-- Returns  heard      the lock is free for all; so many connections to this server heard it
--          {0, 0}     there is no such hold
--          {1, left}  ended; left is the number of holds that remain
--          {2, ttl}   ended; the dedup window lasts ttl ms, as all are told
--          {3, time}  ended, and the queue is next; time in µs
-- of more than one lock, see batch.lua in package conn
local call = redis.call
local count = #KEYS / 3
local width = #ARGV / count
local brief = width < 3
-- include pubsub

-- The usual case, without a step too many: locks that nobody else has to do with.
if brief then
  local pcall = redis.pcall
  local ours = true
  for i = 1, count do
    local held = pcall('HMGET', KEYS[i], ARGV[2 * i - 1], 'mode')
    ours = ours and held[1] == '1' and held[2] == ARGV[2 * i]
  end
  if ours then
    call('DEL', unpack(KEYS, 1, count))
    local heard = {}
    for i = 1, count do
      heard[i] = tonumber(pcall(PUBLISH, 'redisson_lock__channel:{' .. KEYS[i] .. '}', '0')) or -1
    end
    return count == 1 and heard[1] or heard
  end
end

local time = call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

-- include next_token
-- include hash
-- include holders
-- include queue
-- include pass_on
-- include open

-- Passes a lock on that is free, or has room, or frees it for all. A Redis that is out of
-- memory refuses to write: then it is free.
local function pass_or_free(lock, queue, clock, kind)
  local passed, member = pcall(pass_on, lock, queue, clock, now, kind)
  if passed and member then
    return {3, tonumber(now)}
  end
  if kind then
    return {1, 0}
  end
  if not passed then
    call('DEL', lock)
  end
  return tell(channel_of(lock), '0')
end

-- include leave

local function finish(lock, queue, clock, owner, hold, failed, late, waits, last, form, kept, answer)
  local held = call('HMGET', lock, owner, 'mode', 'latchkey:hold:' .. hold, 'latchkey:left', 'latchkey:keep')
  local token, lease = read_mode(held[2])
  local kind = kind_of(held[2])
  local holder = kind and read_holder(lock, owner, now)
  local implied = token and held[1] and hold == owner and not held[4]
  local outermost = implied or held[3] == 'first'
  if not (holder and holds(holder, hold) or token and held[1] and (held[3] or implied)) then
    local member = member_of(owner, hold, form)
    local score = tonumber(call('ZSCORE', queue, member))
    if not score or score >= TOMBSTONE then
      return {0, 0}
    end
    call('ZREM', queue, member)
    if kind or call('EXISTS', lock) == 0 then
      pass_or_free(lock, queue, clock, kind)
    end
    return {1, 0}
  end
  local keep, left = held[5], nil
  if holder then
    token = holder.token
    if answer then
      -- First of all: a Redis that is out of memory refuses it, and the attempt is not over.
      local request = string.match(held[2], ' (%x+) ')
      call('HSET', lock, 'mode', 'w' .. kept .. ' ' .. request, 'latchkey:answer', request .. ' ' .. answer)
      call('PEXPIRE', lock, kept)
      call('HDEL', lock, HOLDER .. owner)
      tell(channel_of(lock), '0') -- who waits is to ask for the answer
      return {2, tonumber(kept)}
    end
    left = leave_holder(lock, held[2], kind, owner, holder, hold, failed, late, held[4])
    if left and (left[2] > 0 or lasts(kind)) then
      return left
    end
  else
    if keep and outermost and failed then
      call('HDEL', lock, 'latchkey:keep')
      keep = nil
    end
    if tonumber(held[1]) > 1 then
      return leave(lock, owner, hold, outermost, late and -1 or tonumber(lease), outermost and keep)
    end
  end

  if not left then
    call('DEL', lock)
  end
  if waits ~= '' then
    local score = tonumber(call('ZSCORE', queue, waits))
    if last ~= '' and score and score < TOMBSTONE then
      call('ZREM', queue, waits) -- its calls have had the lock: others that came later go first
      score = nil
    end
    pcall(enqueue, queue, waits, score, false, now)
  end
  if left then
    return pass_or_free(lock, queue, clock, kind)
  end
  local window = keep and rest(keep) or 0
  if window > 0 then
    call('HSET', lock, 'mode', 'w' .. window)
    call('PEXPIRE', lock, window)
    tell(channel_of(lock), '0') -- who waits is to learn when it ends
    return {2, window}
  end
  local _, others = first_of(queue)
  if others and opens(lock, queue, token, hold) then
    return {3, tonumber(now)}
  end
  return pass_or_free(lock, queue, clock)
end

-- Has an acquisition of this hold refused that arrives later. It returns an error.
local function bury(queue, member, life)
  local written = redis.pcall('ZADD', queue, string.format('%.0f', TOMBSTONE + now + life * 1000), member)
  if type(written) == 'table' then
    return written
  end
  call('ZREMRANGEBYSCORE', queue, TOMBSTONE, string.format('(%.0f', TOMBSTONE + now))
  if call('PTTL', queue) < tonumber(life) then
    call('PEXPIRE', queue, life)
  end
end

local function each(i)
  local lock, queue, clock = KEYS[i], KEYS[count + i], KEYS[2 * count + i]
  local owner, hold, failed, late, life, waits, last, form, kept, answer = unpack(ARGV, width * (i - 1) + 1, width * i)
  if brief then
    hold, failed, late, life, waits, last = owner, '0', '0', '0', '', ''
  end
  form = form or ''
  -- A Redis that is out of memory refuses to write: its error has this repeated, but the
  -- hold ends.
  local failure
  if last ~= '' then
    failure = lift(clock, last)
  end
  local reply = finish(lock, queue, clock, owner, hold, failed == '1', late == '1', waits, last, form, kept, answer)
  if tonumber(life) > 0 then
    failure = bury(queue, member_of(owner, hold, form), life) or failure
  end
  return failure or reply
end
