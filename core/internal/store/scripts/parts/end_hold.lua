-- First step of a release: the hold ends.
-- On return: ended is the token if the lock has no hold any more, and is still there; room says that others may have
-- it; waited that the hold was in the queue; failed that the work of the outermost hold has; reply is that of the script if nothing more
-- happens.
-- Uses release.lua, lock.lua, queue.lua, tell.lua, time.lua, write.lua. Sets ended, failed, kind, mode, number, reply, room, waited.
if not (mine and has(mine.holds, hold)) then
  local member = member_of(owner, hold, form)
  local score = tonumber(call('ZSCORE', queue, member)) or TOMBSTONE
  if kind == 'h' and (not failed or ARGV[4] == '2') and number == token
    and hold == string.match(call('HGET', lock, HOLDER .. owner) or '', '^%S+ %S+ %S+ (%S+)') then
    -- The work under a resumed lock was done, but its release comes after the lease. If nobody has resumed
    -- the lock since, it ends.
    -- include holders
    ended = not next(holders()) and number
  end
  -- That nothing is found counts only from a server that would have written: one that was demoted refuses this.
  waited = not ended and score < TOMBSTONE
  call('ZREM', queue, '!' .. member, waited and member or '')
  room = waited and (not kind or string.find(kind, SEVERAL))
  reply = score < TOMBSTONE and {11, hold} or {0, hold}

elseif answer then
  -- First of all: a Redis that is out of memory refuses it, and the attempt is not over.
  call('HSET', lock, 'mode', 'w' .. stored .. ' ' .. digest, 'latchkey:answer', digest .. ' ' .. answer)
  call('PEXPIRE', lock, stored)
  remove(owner)
  tell('0') -- who waits is to ask for the answer
  reply = {11, hold}

else
  local from, to = has(mine.holds, hold)
  local before = from == 1 and (failed and '!' or '-') or string.sub(mine.holds, 1, from - 2)
  mine.holds = before .. string.sub(mine.holds, to - 1)
  mine.count = kind == 'x' and mine.count - 1 or select(2, string.gsub(mine.holds, '%S%S+', ''))
  reply = {11, hold}
  failed = string.sub(mine.holds, 1, 1) == '!'

  if mine.count > 0 then
    -- The owner may die before the holds that remain end. The dedup window that the outermost hold has
    -- earned must last all the same.
    local earned = string.sub(mine.holds, 1, 1) == '-' and keep and left_of(keep) or 0
    mine.left = math.max(mine.left or call('PTTL', lock), late and 0 or tonumber(mine.lease))
    prolong(math.max(mine.left, earned))
    write(owner, mine)
  elseif kind == 'h' and failed and ARGV[4] ~= '2' or kind == 'i' and not (failed and number == '1') then
    -- A handed over lock is parked again. Of an idempotent request: if the first attempt failed, the lock is
    -- deleted, as if the request had never come (below). If a later attempt failed, or an attempt ends without
    -- saying how, the lock stays without a holder: outcome unknown.
    remove(owner)
    call('PEXPIRE', lock, stays)
  elseif string.find(kind, SEVERAL) then
    remove(owner)
    -- include holders
    -- include room
    room = has_others(mine.left)
    ended = not room and mine.token
  else
    ended = mine.token
  end
end
