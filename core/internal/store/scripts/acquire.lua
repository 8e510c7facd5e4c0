-- Takes a free lock, or enters one that the owner has already. A call that finds the lock busy can put an entry into the queue:
-- a release then grants it the lock. Sent twice with the same hold, it counts once.
--
-- KEYS[1]  the lock, a hash; see lock.lua
-- KEYS[2]  its queue; see queue.lua
-- KEYS[3]  the fencing clock of its hash slot; see next_token.lua
-- ARGV[1]  owner
-- ARGV[2]  lease in ms, negative when nobody renews it; absent: 30000
-- ARGV[3]  how the call waits if the lock is busy: '0' not at all; '1' its process is subscribed, or about to
--          be; '2' it polls; absent: '1'
-- What follows is absent when the owner is the hold, and the lock a simple one:
-- ARGV[4]  hold
-- ARGV[5]  dedup window in ms from now, 0 for none, or for what a resumed lock has
-- ARGV[6]  take: a free lock will do; enter: that of a token; resume: that of a ticket; attempt: for an attempt
-- ARGV[7]  form, see room.lua; exclusive to resume and to attempt
-- ARGV[8]  to enter: the token; to resume: the digest of the ticket; to attempt: that of the request
-- ARGV[9]  to attempt: for how long the idempotent request is known after the lease, in ms
-- ARGV[10] to attempt: '1' to have no attempt after one whose outcome is unknown
--
-- Returns  token .. hold  a free lock was taken, for the lease asked for
--          {1, token .. hold, ttl, time, outermost, attempt, lease}  taken or entered; ttl and lease in ms, lease negative when
--                   nobody renews it; time in µs; outermost is 1 or 0; attempt is the number of the attempt, or 0
--          {2, hold, ttl, time, why, new}  busy; why is 1 when nothing will lengthen the ttl, 2 in a dedup
--                   window, 3 when it was handed over, 4 when it is a string, else 0; new is 1 when the entry was not queued before
--          {3, hold}  the lock to enter is gone, or no lock is parked for the ticket
--          {4, hold}  this hold was given up before the script arrived
--          {5, hold}  something else has this name: a lock of Redisson's of another kind
--          {6, hold}  the owner has it in a form that does not include this one
--          {7, answer .. hold, ttl}  of an earlier attempt
--          {8, hold, …}  the lock is of another request
--          {9, hold, ttl}  the outcome of the last attempt is unknown
local BARGING_MS = 3 -- the barging window
local call = redis.call
local lock, queue, clock, owner, lease = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2] or '30000'

-- include time

-- The fast path, before any function is made: a free lock, for which nobody waits.
if not ARGV[4] and call('EXISTS', lock, queue) == 0 then
  local last = call('GETSET', clock, now)
  if last and last >= now then
    call('SET', clock, last) -- the token has to be a greater one, see next_token.lua
  elseif redis.pcall('HSET', lock, owner, '1', 'mode', lease == '30000' and 'x' .. now or 'x' .. now .. ' ' .. lease) == 2
    and redis.pcall('PEXPIRE', lock, lease) == 1 then
    return now .. owner
  else
    call('DEL', lock) -- and find out why, below
  end
end

local waits, hold, window, how, asked_form = ARGV[3] or '1', ARGV[4] or owner, ARGV[5] or '0', ARGV[6] or 'take', ARGV[7] or ''
local form = how == 'attempt' and 'i' or how == 'resume' and 'h' or asked_form
local wanted, known, refuse = ARGV[8], ARGV[9], ARGV[10]

-- include string
-- include lock
-- include queue

local member = member_of(owner, hold, asked_form)
local score = tonumber(call('ZSCORE', queue, member))
if score and score >= TOMBSTONE then
  return {4, hold}
end

-- include read
-- include rest
if how == 'enter' and not (mine and mine.token == wanted) or how == 'resume' and not (kind == 'h' and digest == wanted) then
  return unwritable() or {3, hold}
elseif kind == '?' then
  return {5, hold}
elseif kind == 'f' then
  return {2, hold, call('PTTL', lock), tonumber(now), 4, 0}
elseif how == 'attempt' then
  if digest and digest ~= wanted and kind ~= 'h' then
    return {8, hold, kind == 'w' and rest(tonumber(number)) or 0}
  elseif digest and kind == 'w' then
    return {7, string.sub(call('HGET', lock, 'latchkey:answer'), #wanted + 2) .. hold, rest(tonumber(number))}
  elseif mine and not (kind == 'i' and has(mine.holds, hold)) then
    mine = nil
  end
end

-- include write
local free = not mine and not kind
if not mine and kind and kind ~= 'x' then -- an exclusive lock has no room
  -- include holders
  -- include room
  free = makes_room(form)
end

-- Nobody overtakes the queue; but who asks may be the next.
local new, head = 0, free and how == 'take' and call('ZRANGE', queue, 0, 0, 'WITHSCORES') or {}
local others = head[1] and tonumber(head[2]) < TOMBSTONE
if others and (head[1] ~= member or form ~= '') then
  if waits ~= '0' and not score then
    new = enqueue(member, score, waits == '2')
    if not kind then -- whoever has waited longer may ask first
      return {2, hold, BARGING_MS, tonumber(now), 0, new}
    end
  end
  -- include pubsub
  -- include tell
  -- include grant
  local got = grant(member)
  if got == member then
    -- include read
  elseif got then
    return {2, hold, GRANT_MS, tonumber(now), 0, new}
  end
end

local outermost, begins, failure = true, true, nil -- the hold is the first; its dedup window is to begin
if mine and string.find(kind, SEVERAL) and kind ~= string.sub(form, 1, 1) then
  return {6, hold}
elseif mine then
  -- include enter
elseif not free then
  -- include busy
elseif how == 'attempt' and kind and refuse == '1' then
  return {9, hold, rest(tonumber(stays))}
else
  if how == 'attempt' then
    digest, stays = wanted, known
  end
  -- include next_token
  -- include take
  mine, failure = take(owner, hold, form, lease, others or window ~= '0')
  if not failure and (score or new == 1) then
    call('ZREM', queue, member, '!' .. member)
  end
end
if failure then
  return failure
elseif begins and window ~= '0' then
  call('HSET', lock, 'latchkey:keep', string.format('%.0f', now + window * 1000) .. ' ' .. window)
end
return begins and how == 'take' and mine.token == now and now .. hold
  or {1, mine.token .. hold, mine.left, tonumber(now), outermost and 1 or 0, how == 'attempt' and tonumber(number) or 0, tonumber(mine.lease)}
