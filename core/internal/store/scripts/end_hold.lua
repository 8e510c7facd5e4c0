-- The first step of a release: the hold ends.
if not (mine and has(mine.holds, hold)) then
  local member = member_of(owner, hold, form)
  local score = tonumber(call('ZSCORE', queue, member)) or TOMBSTONE
  if kind == 'h' and not failed and hold == owner and number == string.match(plain, '%d+') and not next((holders())) then
    -- The work under a lock that was resumed was done, but the release comes after the lease, and
    -- nobody has resumed it since.
    ended = number
  elseif score < TOMBSTONE then
    call('ZREM', queue, member)
    waited, room = true, not kind or kind == 's' or kind == 'p'
  end
  reply = score < TOMBSTONE and {11, '', 0, 0, 0, 0} or {0}

elseif answer then
  -- First of all: a Redis that is out of memory refuses it, and the attempt is not over.
  call('HSET', lock, 'mode', 'w' .. stored .. ' ' .. digest, 'latchkey:answer', digest .. ' ' .. answer)
  call('PEXPIRE', lock, stored)
  write(owner, nil)
  tell('0') -- who waits is to ask for the answer
  reply = {12, '', tonumber(stored)}

else
  local left, count = {}, 0
  for other in string.gmatch(mine.holds, '%S+') do
    if other ~= hold then
      left[#left + 1] = other
      count = count + (#other > 1 and 1 or 0)
    elseif #left == 0 then
      left[1] = failed and '!' or '-'
    end
  end
  mine.holds, mine.count = table.concat(left, ' '), kind == 'x' and mine.count - 1 or count
  reply = {11, '', 0, 0, 0, mine.count}
  failed = left[1] == '!'

  if mine.count > 0 then
    -- Those that remain may never end theirs: the window that the outermost hold has earned lasts all the same.
    local earned = left[1] == '-' and keep and left_of(keep) or 0
    mine.left = math.max(mine.left or call('PTTL', lock), late and 0 or tonumber(mine.lease))
    prolong(math.max(mine.left, earned))
    write(owner, mine)
  elseif kind == 'h' and failed or kind == 'i' and not (failed and number == '1') then
    -- It is parked again. A request is as if it had not come if its first attempt has failed. Of others, or
    -- where nobody has said what came of it, the outcome is unknown.
    write(owner, nil)
    call('PEXPIRE', lock, stays)
  elseif kind == 's' or kind == 'p' then
    write(owner, nil)
    -- include room
    room = call('HLEN', lock) > 1 and (call('PTTL', lock) > mine.left or not makes_room(''))
    ended = not room and mine.token
  else
    ended = mine.token
  end
end
