-- The usual case, without a step too many: free locks, for which nobody waits.
if brief and call('EXISTS', unpack(KEYS, 1, 2 * count)) == 0 then
  local ahead = false
  if count == 1 then
    local last = call('GETSET', KEYS[3], now)
    if last and last >= now then
      ahead = true
      call('SET', KEYS[3], last)
    end
  else
    local clocks = {}
    local tokens = call('MGET', unpack(KEYS, 2 * count + 1))
    for i = 1, count do
      local last = tokens[i]
      ahead = ahead or last and last >= now
      clocks[2 * i - 1], clocks[2 * i] = KEYS[2 * count + i], now
    end
    if not ahead then
      call('MSET', unpack(clocks))
    end
  end
  if not ahead then
    local pcall = redis.pcall
    local taken = 0
    for i = 1, count do
      local lock, lease = KEYS[i], width > 1 and ARGV[width * (i - 1) + 2] or '30000'
      local mode = lease == '30000' and 'x' .. now or 'x' .. now .. ' ' .. lease
      -- Two fields, unless the command names a lock twice.
      if pcall('HSET', lock, ARGV[width * (i - 1) + 1], '1', 'mode', mode) ~= 2
        or pcall('PEXPIRE', lock, lease) ~= 1 then
        break
      end
      taken = i
    end
    if taken == count then
      return now
    end
    call('DEL', unpack(KEYS, 1, taken + 1)) -- and find out why, below
  end
end
