-- Entering a lock that the owner has already, and saying that a lock is busy.

-- How long the lock lasts, in ms. After the clock was set back that would be more than the whole of
-- it. It may be more, too, when the lock has several holds, or had them: Redisson may have
-- given it longer, and so may a dedup window that the outermost hold has earned.
local function rest(whole, holds)
  local ttl = call('PTTL', lock)
  if not whole or ttl <= whole or string.find(holds or '', '^[-!]') then
    return ttl
  end
  for _, value in ipairs(call('HVALS', lock)) do
    if tonumber(value) and value ~= '1' then
      return ttl
    end
  end
  call('PEXPIRE', lock, whole)
  return whole
end

-- Adds the hold to what the owner has of the lock, unless it is there.
local function enter(mine)
  local outermost = hold == string.match(mine.holds, '%S+')
  if not mine.token then
    -- Redisson took it for this owner: it becomes one of ours as well.
    kind, mine.lease = 'x', lease
    mine.token = next_token()
  elseif mine.lease == '0' then
    -- A re-entry before the first renewal must not cut short what the holder believes in.
    mine.lease = outermost and lease or tostring(math.max(math.abs(lease), GRANT_MS))
    mine.left = math.abs(mine.lease)
    if outermost and window ~= '0' then
      call('HSET', lock, 'latchkey:keep', keep_of(window))
    end
  end
  if not has(mine.holds, hold) then
    mine.holds, mine.count = mine.holds .. ' ' .. hold, (mine.count or 0) + 1
  end
  local length = tonumber(mine.lease)
  mine.left = math.max(mine.left or rest(math.abs(length), mine.holds), length)
  write(owner, mine)
  prolong(mine.left)
  return {1, mine.token, mine.left, tonumber(now), outermost and 1 or 0, how == 'attempt' and tonumber(number) or 0, length}
end

-- held is what the holder of an exclusive lock has.
local function busy(held, new)
  local why, whole = 0, nil
  if held then
    whole = length_of(held.lease)
    why = tonumber(held.lease) < 0 and 1 or 0
  elseif kind == 'w' then
    why, whole = 2, tonumber(number)
  elseif kind == 'h' or kind == 'i' then
    local _, holder = next((holders()))
    local left = holder and holder.left or 0
    if kind ~= form then
      why, whole = kind == 'h' and 3 or 0, left + stays
    else -- whoever else resumes it, or makes an attempt, may when that one ends
      return {2, '', left, tonumber(now), tonumber(holder.lease) < 0 and 1 or 0, 0}
    end
  end
  return {2, '', rest(whole, held and held.holds), tonumber(now), why, new}
end
