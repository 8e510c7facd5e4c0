-- What a release does, step by step.

local function ended(left)
  return {11, '', 0, 0, 0, left}
end

-- Stores the answer to a request. That comes first of all: a Redis that is out of memory refuses it,
-- and the attempt is not over.
local function store_answer()
  call('HSET', lock, 'mode', 'w' .. stored .. ' ' .. digest, 'latchkey:answer', digest .. ' ' .. answer)
  call('PEXPIRE', lock, stored)
  write(owner, nil)
  tell(channel_of(lock), '0') -- who waits is to ask for the answer
  return {12, '', tonumber(stored)}
end

-- Grants a lock that is free, or has room, or frees it for all. A Redis that is out of
-- memory refuses to write: then it is free.
local function grant_or_free()
  local free = not kind
  local done, member = pcall(grant)
  if done and member then
    return {13, '', 0, tonumber(now)}
  elseif not free then
    return ended(0)
  elseif not done then
    call('DEL', lock)
  end
  return tell(channel_of(lock), '0')
end

-- The process goes on waiting, in its old place unless its calls have had the lock meanwhile.
local function wait_on()
  if waits ~= '' then
    local score = tonumber(call('ZSCORE', queue, waits))
    if given ~= '' and score and score < TOMBSTONE then
      call('ZREM', queue, waits)
      score = nil
    end
    pcall(enqueue, waits, score, false)
  end
end

-- Ends a lock that nobody holds any more, and which had a token.
local function end_lock(token)
  call('DEL', lock)
  kind, mode = nil, ''
  wait_on()
  local left = keep and not failed and left_of(keep) or 0
  if left > 0 then
    call('HSET', lock, 'mode', 'w' .. left)
    call('PEXPIRE', lock, left)
    tell(channel_of(lock), '0') -- who waits is to learn when it ends
    return {12, '', left}
  end
  local _, others = first_of()
  if others and opens(token) then
    return {13, '', 0, tonumber(now)}
  end
  return grant_or_free()
end

-- Takes the hold out of a list, or leaves the outcome in place of the first. Returns the list, and how
-- many holds it has.
local function without(list)
  local left, count = {}, 0
  for other in string.gmatch(list, '%S+') do
    if other ~= hold then
      left[#left + 1] = other
      count = count + (#other > 1 and 1 or 0)
    elseif #left == 0 then
      left[1] = failed and '!' or '-'
    end
  end
  return table.concat(left, ' '), count
end

-- Ends the hold of an owner, and the lock with the last one.
local function end_hold(mine)
  local count
  mine.holds, count = without(mine.holds)
  mine.count = kind == 'x' and mine.count - 1 or count
  local outcome = string.sub(mine.holds, 1, 1)
  if mine.count > 0 then
    -- Those that remain may never end theirs: the window that the outermost hold has earned lasts all the same.
    local earned = outcome == '-' and keep and left_of(keep) or 0
    mine.left = math.max(mine.left or call('PTTL', lock), late and 0 or tonumber(mine.lease))
    prolong(math.max(mine.left, earned))
    write(owner, mine)
    return ended(mine.count)
  end
  failed = outcome == '!'
  -- A request is as if it had not come if its first attempt has failed. Of others, or where nobody has
  -- said what came of it, the outcome is unknown.
  if kind == 'h' and failed or kind == 'i' and not (failed and number == '1') then
    write(owner, nil)
    call('PEXPIRE', lock, stays)
    return ended(0)
  elseif kind == 's' or kind == 'p' then
    write(owner, nil)
    if call('HLEN', lock) > 1 and (call('PTTL', lock) > mine.left or sweep() > 0) then
      wait_on()
      return grant_or_free()
    end
  end
  return end_lock(mine.token)
end

-- Ends a hold that may wait in the queue.
local function end_wait()
  local member = member_of(owner, hold, form)
  local score = tonumber(call('ZSCORE', queue, member))
  if not score or score >= TOMBSTONE then
    return {0}
  end
  call('ZREM', queue, member)
  if not kind or kind == 's' or kind == 'p' then
    grant_or_free()
  end
  return ended(0)
end

-- Has an acquisition of this hold refused that arrives later. Returns an error or nil.
local function bury()
  local written = redis.pcall('ZADD', queue, string.format('%.0f', TOMBSTONE + now + life * 1000), member_of(owner, hold, form))
  if type(written) == 'table' then
    return written
  end
  call('ZREMRANGEBYSCORE', queue, TOMBSTONE, string.format('(%.0f', TOMBSTONE + now))
  if call('PTTL', queue) < tonumber(life) then
    call('PEXPIRE', queue, life)
  end
end
