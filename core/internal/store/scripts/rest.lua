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
