-- How long the lock lasts, in ms. After the clock was set back, or a foreign EXPIRE or PERSIST, that would be longer than its whole
-- lease, or the dedup window that the outermost hold has earned: then it is cut to that. But where the owner has other
-- holds than ours, Redisson may have prolonged the lock.
-- Uses call, lock, owner; lock.lua.
local function rest(whole, holds)
  local ttl, ours = call('PTTL', lock), holds == owner and 1 or select(2, string.gsub(holds or '', '%S%S+', ''))
  whole = whole and keep and string.find(holds or '', '^-') and math.max(whole, left_of(keep)) or whole
  if not whole or ttl >= 0 and ttl <= whole then
    return ttl
  end
  local fields = call('HGETALL', lock)
  for i = 2, #fields, 2 do
    if tonumber(fields[i]) and tonumber(fields[i]) ~= ours then
      return ttl
    end
  end
  call('PEXPIRE', lock, whole)
  return whole
end
