-- Last step of an acquisition when somebody else has the lock: the call waits for it, if it wants to. It returns.
-- Uses acquire.lua, lock.lua, queue.lua, rest.lua, time.lua, write.lua. Sets new.
if waits ~= '0' then
  if new == 0 then
    new = enqueue(member, score, waits == '2')
  end
  if held and not held.more then
    call('HSET', lock, 'mode', mode .. '+')
  end
end

local why, whole, left = 0, nil, nil
if held then
  why, whole = tonumber(held.lease) < 0 and 1 or 0, length_of(held.lease)
elseif kind == 'w' then
  why, whole = 2, tonumber(number)
elseif kind == 'h' or kind == 'i' then
  -- include holders
  local _, holder = next(holders())
  why, whole = kind == 'h' and 3 or 0, (holder and holder.left or 0) + stays
  if kind == form then -- whoever else resumes it, or makes an attempt, may when that one ends
    why, left, new = tonumber(holder.lease) < 0 and 1 or 0, holder.left, 0
  end
end
return {2, hold, left or rest(whole, held and held.holds), tonumber(now), why, new}
