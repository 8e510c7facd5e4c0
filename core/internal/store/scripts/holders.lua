-- The holders of a lock that is shared, has permits, was handed over, or is of a request. Each ends by
-- the clock of Redis, for every script that reads it.

-- Returns those that have not ended, by their owners, and the fields of the others.
local function holders()
  local living, ended = {}, {}
  local fields = call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local owner = string.match(fields[i], '^' .. HOLDER .. '(.*)$')
    if owner then
      living[owner] = parse_holder(fields[i + 1])
      ended[#ended + 1] = not living[owner] and fields[i] or nil
    end
  end
  return living, ended
end

-- Takes out the holders that have ended, and has the lock last no longer than the others. Returns how
-- many they are, and in how many ms the first of them ends.
local function sweep()
  local living, ended = holders()
  for _, field in ipairs(ended) do
    call('HDEL', lock, field)
  end
  local count, first, last = 0, math.huge, 0
  for owner, holder in pairs(living) do
    count, first, last = count + 1, math.min(first, holder.left), math.max(last, holder.left)
    if holder.cut then -- not others: rounded up each time, none would end
      write(owner, holder)
    end
  end
  if count == 0 then
    call('DEL', lock)
    kind, mode = nil, ''
  elseif call('PTTL', lock) > last then
    call('PEXPIRE', lock, last)
  end
  return count, first
end
