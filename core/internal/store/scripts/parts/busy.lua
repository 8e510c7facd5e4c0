-- Somebody else has the lock. The call waits for it, if it wants to. Ends the script.
-- Uses the variables of acquire.lua; mode, kind, number, stays of lock.lua; queue.lua, holders.lua.
if waits ~= '0' then
  if new == 0 then
    new = enqueue(member, score, waits == '2')
  end
  if held and not held.more then
    call('HSET', lock, 'mode', mode .. '+')
  end
end

local why, whole = 0, nil
if held then
  why, whole = tonumber(held.lease) < 0 and 1 or 0, length_of(held.lease)
elseif kind == 'w' then
  why, whole = 2, tonumber(number)
elseif kind == 'h' or kind == 'i' then
  -- include holders
  local its, holder = next(holders())
  local left = holder and holder.left or 0
  local _ = holder and holder.cut and write(its, holder) -- once: rounded up each time, it would not end
  if kind == form then -- whoever else resumes it, or makes an attempt, may when that one ends
    return {2, hold, left, tonumber(now), tonumber(holder.lease) < 0 and 1 or 0, 0}
  end
  why, whole = kind == 'h' and 3 or 0, left + stays
end
return {2, hold, rest(whole, held and held.holds), tonumber(now), why, new}
