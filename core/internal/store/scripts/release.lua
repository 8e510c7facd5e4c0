-- Ends a hold, wherever it is: in the lock, in the queue, or not yet arrived. The last hold of a lock frees it, or begins its
-- dedup window. A free lock is granted to the queue. An attempt at an idempotent request ends with its answer, which later
-- attempts get. Sent twice, it counts once.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  its queue; see queue.lua
-- KEYS[3]  the fencing clock of its hash slot; see next_token.lua
-- ARGV[1]  owner
-- ARGV[2]  alone after the owner: the whole mode as it is when nobody waits, x<token>[ <lease>]. If that is still the
--          mode, the fast path deletes the lock. Where more follows: the token
-- What follows is absent when the owner is the hold, and no more is to be done:
-- ARGV[3]  hold
-- ARGV[4]  '1' when the work has failed: that of the outermost hold begins no dedup window then, a lock that was
--          handed over is parked again, and a first attempt leaves no trace; '2': it is not parked again
-- ARGV[5]  '1' when the release is late: the holds that remain get no new lease by it
-- ARGV[6]  lifetime of a tombstone in ms; 0: none, no acquisition of this hold can arrive later
-- ARGV[7]  the entry by which other calls of the process go on waiting; '' when there are none
-- ARGV[8]  the last token that the process has given under this lock: greater than the lock's own when it has
--          handed it off in memory
-- ARGV[9]  form, see room.lua; absent: exclusive
-- ARGV[10] for how long the answer to the request is stored, in ms; absent: there is none
-- ARGV[11] that answer
--
-- Returns  heard .. hold  the lock is free for all; so many connections to this server got the message, absent: none
--          {0, hold}      there is no such hold
--          {11, hold}     ended: other holds remain, or it was only in the queue, or a dedup window has begun, or an
--                         answer was stored
--          {12, hold, 0, time}  ended, and the queue is next: an entry was granted the lock, or the barging
--                         window opened; time in µs
local call = redis.call
local lock, queue, clock, owner, simple_mode = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2]
-- include pubsub

-- The fast path, before any function is made.
if not ARGV[3] then
  -- include simple
  if simple then
    call('DEL', lock)
    local heard = redis.pcall(PUBLISH, CHANNEL .. lock .. '}', '0')
    return heard == 0 and owner or (tonumber(heard) or 0) .. owner
  end
end

local hold, failed, late, tombstone_ms = ARGV[3] or owner, (ARGV[4] or '0') ~= '0', ARGV[5] == '1', ARGV[6] or '0'
local token = string.match(simple_mode, '%d+')
local entry, last_token, form, stored, answer = ARGV[7] or '', ARGV[8] or token, ARGV[9] or '', ARGV[10], ARGV[11]

-- include time
-- include string
-- include lock
-- include write
-- include queue
-- include tell

-- A Redis that is out of memory refuses to write. The hold ends all the same; the error that is returned has the release sent again.
-- include raise_clock
local failure = last_token ~= token and raise_clock(last_token) or nil

-- include read
local reply, ended, room, waited
-- include end_hold

local left = ended and keep and not failed and left_of(keep) or 0
if left > 0 then -- whoever lacks a right is refused before anything has changed
  call('PEXPIRE', lock, left)
  call('HSET', lock, 'mode', mode)
end
if ended then
  call('DEL', lock)
  kind, mode, digest, stays, room = nil, '', nil, 0, true
end
-- Other calls of the process go on waiting: in the entry's old place, unless the lock was handed off to them meanwhile.
if room and entry ~= '' then
  local score = tonumber(call('ZSCORE', queue, entry))
  if last_token ~= token and score and score < TOMBSTONE then
    call('ZREM', queue, entry)
    score = nil
  end
  pcall(enqueue, entry, score, false)
end
if left > 0 then
  call('HSET', lock, 'mode', 'w' .. left)
  call('PEXPIRE', lock, left)
  tell('0') -- who waits is to learn when it ends
  reply, room = {11, hold}, false
end
if room then
  -- include grant_or_free
end

-- An acquisition of this hold that arrives later is refused.
if tombstone_ms ~= '0' then
  local buried = redis.pcall('ZADD', queue, string.format('%.0f', TOMBSTONE + now + tombstone_ms * 1000), member_of(owner, hold, form))
  failure = type(buried) == 'table' and buried or failure
  call('ZREMRANGEBYSCORE', queue, TOMBSTONE, string.format('(%.0f', TOMBSTONE + now))
  call('PEXPIRE', queue, tombstone_ms) -- nothing in it lasts longer
end
return failure or reply
