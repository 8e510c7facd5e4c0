-- How long the lock lasts, in ms. A clock that was set back would make it last longer than its whole
-- lease: then it is cut to that. But a lock that has or had several holds may rightly last longer: Redisson
-- may have prolonged it, or the outermost hold has earned a dedup window.
-- Uses call, lock.
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
