-- Entering a lock that the owner holds already.

-- What is left of a lease or dedup window in ms. After the clock was set back that would be
-- more than the whole of it. It may be more, too, when the lock has several holds, or had
-- them: Redisson may have given it longer, and so may a window that is earned.
local function rest(lock, whole)
  local ttl = call('PTTL', lock)
  if whole and ttl > whole then
    local fields = call('HGETALL', lock)
    for i = 1, #fields, 2 do
      local field = fields[i]
      if field == 'latchkey:left' or field ~= 'mode' and string.sub(field, 1, 9) ~= 'latchkey:' and fields[i + 1] ~= '1' then
        return ttl
      end
    end
    call('PEXPIRE', lock, whole)
    return whole
  end
  return ttl
end

-- Enters an exclusive lock that the owner holds. held is what look returns.
local function enter_held(lock, clock, owner, hold, lease, window, held)
  local mode, reentry = held[2], held[3]
  local token, whole = read_mode(mode)
  if not token then
    -- Redisson took it for this owner: it becomes one of ours as well.
    token, whole = next_token(clock, now), lease
    call('HSET', lock, 'latchkey:left', 'yes')
  elseif whole == '0' then
    if hold ~= owner and reentry ~= 'first' then
      -- A re-entry before the first renewal must not cut short what the holder believes in.
      lease, window = tostring(math.max(math.abs(lease), GRANT_MS)), '0'
    end
    whole = lease
    if window ~= '0' then
      call('HSET', lock, 'latchkey:keep', keep(window, now))
    end
    call('HSET', lock, 'mode', mode_of(token, whole, true))
    call('PEXPIRE', lock, math.abs(whole))
  end
  local outermost = 1
  if hold ~= owner then
    if not reentry then
      reentry = 'again'
      call('HSET', lock, 'latchkey:hold:' .. hold, reentry, 'mode', mode_of(token, whole, true))
      call('HINCRBY', lock, owner, 1)
    end
    outermost = reentry == 'first' and 1 or 0
  end
  local length = tonumber(whole)
  local ttl = rest(lock, math.abs(length))
  if ttl < length then
    call('PEXPIRE', lock, length)
    ttl = length
  else
    touch(lock)
  end
  return {1, token, length, ttl, outermost, token > now and 1 or nil}
end

-- Enters a lock that the owner holds together with others, or could.
local function enter_holder(lock, owner, hold, mode, lease, holder)
  local outermost = hold == string.match(holder.holds, '^%S+')
  if holder.lease == '0' then
    -- A re-entry before the first renewal must not cut short what the holder believes in.
    holder.lease = outermost and lease or tostring(math.max(math.abs(lease), GRANT_MS))
    holder.left = math.abs(holder.lease)
  end
  if not holds(holder, hold) then
    holder.holds = holder.holds .. ' ' .. hold
  end
  local length = tonumber(holder.lease)
  holder.left = math.max(holder.left, length)
  write_holder(lock, owner, holder, now)
  outlast(lock, mode, holder.left)
  return {1, holder.token, length, holder.left, outermost and 1 or 0, holder.token > now and 1 or nil}
end
