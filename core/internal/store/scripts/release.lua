-- Ends a hold, wherever it is: in the lock, in the queue, or not yet arrived. The last
-- hold of a lock frees it, or opens its dedup window. A free lock is granted to the queue.
-- An attempt at an idempotent request ends with its answer, which later attempts get.
-- Sent twice, it counts once.
--
-- KEYS[1]  the lock; see lock.lua
-- KEYS[2]  its queue; see queue.lua
-- KEYS[3]  the fencing clock of its hash slot; see token.lua
-- ARGV[1]  owner
-- ARGV[2]  x<token>[ <lease>]: the mode of an exclusive lock with which nobody else has to do; where more
--          follows, the token
-- What follows is absent when the owner is the hold, and no more is to be done:
-- ARGV[3]  hold
-- ARGV[4]  outcome of the work: done or failed. When that of the outermost hold has failed, it opens no
--          dedup window, a lock that was handed over is parked again, and a first attempt leaves no trace
-- ARGV[5]  '1' when the release is late: the holds that remain get no new lease by it
-- ARGV[6]  lifetime of a tombstone in ms; 0: none, no acquisition of this hold can arrive later
-- ARGV[7]  the member of the queue with which the process goes on waiting; '' when it does not
-- ARGV[8]  the last token that the process has given under this lock, when it has handed it
--          on in memory; '' for the lock's own
-- ARGV[9]  form, see holders.lua; absent: exclusive
-- ARGV[10] for how long the answer to the request is stored, in ms; absent: there is none
-- ARGV[11] that answer
--
-- Returns  heard          the lock is free for all; so many connections to this server heard it
--          {0}            there is no such hold
--          {11, '', 0, 0, 0, left}  ended; left is the number of holds that remain
--          {12, '', ttl}  ended; the dedup window lasts ttl ms, as all are told
--          {13, '', 0, time}  ended, and the queue is next; time in µs
local call = redis.call
local lock, queue, clock = KEYS[1], KEYS[2], KEYS[3]
local owner, plain = ARGV[1], ARGV[2]
-- include pubsub

-- The usual case, before any function is made.
if not ARGV[3] then
  local held = redis.pcall('HMGET', lock, owner, 'mode')
  if held[1] == '1' and held[2] == plain then
    call('DEL', lock)
    return tonumber(redis.pcall(PUBLISH, 'redisson_lock__channel:{' .. lock .. '}', '0')) or -1
  end
end

local hold, failed, late, life = ARGV[3] or owner, ARGV[4] == 'failed', ARGV[5] == '1', ARGV[6] or '0'
local waits, given, form, stored, answer = ARGV[7] or '', ARGV[8] or '', ARGV[9] or '', ARGV[10], ARGV[11]

-- include time
-- include token
-- include lock
-- include holders
-- include queue
-- include publish
-- include grant
-- include open
-- include window
-- include leave

-- A Redis that is out of memory refuses to write: its error has this repeated, but the
-- hold ends.
local failure = given ~= '' and raise_clock(given)

local reply
local mine = read(owner)
if mine and has(mine.holds, hold) then
  reply = answer and store_answer() or end_hold(mine)
elseif kind == 'h' and not failed and hold == owner and number == string.match(plain, '%d+') and has_room('h') then
  -- Its work was done, but the release has come after the lease: nobody has resumed it since.
  reply = end_lock(number)
else
  reply = end_wait()
end

if life ~= '0' then
  failure = bury() or failure
end
return failure or reply
