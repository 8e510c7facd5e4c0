-- The holders of a lock that is shared, has permits, was handed over, or is of a request. Each ends by
-- the clock of Redis, for every script that reads it.
-- Uses call, lock; lock.lua, write.lua.

-- Returns those that have not ended, by their owners. Writes those that are cut, and no others: rounded up each time, none
-- would end. Removes those that have ended if the lock is to be taken, for they would live again if the clock was set
-- back; and further permits that nobody has any more: an older latchkey leaves them.
local function holders(taking)
  local living, owners = {}, {}
  local fields = call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local owner = string.match(fields[i], '^' .. HOLDER .. '(.*)$')
    if owner then
      living[owner] = parse_holder(fields[i + 1])
      if living[owner] and living[owner].cut then
        write(owner, living[owner])
      end
    end
    owners[fields[i]] = taking and (owner or string.match(fields[i], '^' .. FURTHER .. '%d+:(.*)$')) or nil
  end
  for field, owner in pairs(owners) do
    if not living[owner] then
      call('HDEL', lock, field)
    end
  end
  return living
end
