-- Writes to a lock.
-- Uses call, lock, now; lock.lua. Sets mode.
local FURTHER = 'latchkey:weight:' -- and i, a colon and the owner

-- The mode as it is to be. its is what the owner of an exclusive lock has.
local function mode_of(owner, its)
  if kind ~= 'x' then
    return kind .. number .. (digest and ' ' .. digest .. ' ' .. stays or '')
  end
  local holds = its.holds == owner and '' or ' ' .. its.holds
  local lease = its.lease == '30000' and holds == '' and '' or ' ' .. its.lease
  return 'x' .. its.token .. lease .. holds .. ((its.more or holds ~= '') and '+' or '')
end

-- Takes a holder out, of a lock that stays.
local function remove(owner)
  call('HDEL', lock, HOLDER .. owner)
  local i = 1
  while kind == 'p' and call('HDEL', lock, FURTHER .. i .. ':' .. owner) == 1 do
    i = i + 1
  end
end

-- Writes what an owner has of the lock, and the mode. A holder that is new comes with its form. A resent command
-- that finds its work done writes as well. For the client may send WAIT next, to have replicas confirm, and WAIT
-- reaches no further than the last write of its own connection.
local function write(owner, its)
  mode = mode_of(owner, its)
  if kind == 'x' then
    return call('HSET', lock, owner, its.count, 'mode', mode)
  end
  if kind == 'p' and its.form and owner ~= its.holds then
    remove(owner) -- a holder of that owner that has ended may have had more permits
  end
  local ends = string.format('%.0f', now + its.left * 1000)
  call('HSET', lock, HOLDER .. owner, ends .. ' ' .. its.lease .. ' ' .. its.token .. ' ' .. its.holds, 'mode', mode)
  for i = 1, (string.match(its.form or '', 'w(%d+)$') or 1) - 1 do
    call('HSET', lock, FURTHER .. i .. ':' .. owner, '-')
  end
end

-- Makes the lock last for a holder that ends in so many ms, unless the lock has no end at all. It writes
-- also where nothing changes: a Redis that is out of memory lets a script go on that has written. lasts is for how long the
-- lock lasts before that, if it was read. Returns an error or nil.
local function prolong(left, lasts)
  if kind ~= 'x' then
    left = math.max(lasts or call('PTTL', lock), left + stays)
  end
  local done = left > 0 and redis.pcall('PEXPIRE', lock, left) or 1
  return done ~= 1 and done or nil
end
