-- Ending a hold.

-- What is left of a dedup window that is to open, in ms.
local function rest(keep)
  local ends, whole = string.match(keep, '(%d+) (%d+)')
  return math.min(math.ceil((ends - now) / 1000), tonumber(whole)) -- the clock may have been set back
end

-- Ends one of several holds, and starts their lease anew. Those that remain may never end
-- theirs: the window that the outermost hold has earned lasts all the same.
local function leave(lock, owner, hold, outermost, ttl, earned)
  call('HDEL', lock, 'latchkey:hold:' .. hold)
  if outermost then
    call('HSET', lock, 'latchkey:left', 'yes')
  end
  local left = call('HINCRBY', lock, owner, -1)
  ttl = earned and math.max(ttl, rest(earned)) or ttl
  if call('PTTL', lock) < ttl then
    call('PEXPIRE', lock, ttl)
  end
  return {1, left}
end

-- Ends a hold of a holder. outer is what latchkey:left says. Returns the reply, or nil when the
-- lock has ended with it.
local function leave_holder(lock, mode, kind, owner, holder, hold, failed, late, outer)
  local left = {}
  for other in string.gmatch(holder.holds, '%S+') do
    if other ~= hold then
      left[#left + 1] = other
    end
  end
  if #left > 0 then
    if lasts(kind) and not outer and hold == string.match(holder.holds, '^%S+') then
      call('HSET', lock, 'latchkey:left', failed and 'failed' or 'yes')
    end
    holder.holds = table.concat(left, ' ')
    holder.left = late and holder.left or math.max(holder.left, tonumber(holder.lease))
    write_holder(lock, owner, holder, now)
    outlast(lock, mode, holder.left)
    return {1, #left}
  end
  call('HDEL', lock, HOLDER .. owner)
  if lasts(kind) then
    failed = outer == 'failed' or failed and not outer
    -- A request is as if it had not come if its first attempt has failed. Of others, or where
    -- nobody has said what became of it, one does not know.
    if kind == 'h' and failed or kind == 'i' and not (failed and string.match(mode, '^i1 ')) then
      call('PEXPIRE', lock, string.match(mode, '%d+$'))
      return {1, 0}
    end
  elseif call('HLEN', lock) > 1 and (call('PTTL', lock) > holder.left or not has_room(lock, kind, '', now)) then
    return {1, 0}
  end
end
