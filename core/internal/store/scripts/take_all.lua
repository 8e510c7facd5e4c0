-- Takes several locks for one or more calls: all, if all are free and nobody waits for any; otherwise none. Those are
-- sent one by one then, to acquire.lua. So what is sent twice counts once.
--
-- KEYS     the locks, then their queues, then the fencing clocks of their hash slots
-- ARGV     of each lock the owner, which is the hold; or of each lock owner and lease in ms
--
-- Returns  the token of all; nil: nothing was done; 0: nothing was done, for a lock is taken
local call, try = redis.call, redis.pcall
local count = #KEYS / 3
local width = #ARGV / count
if call('EXISTS', unpack(KEYS, 1, 2 * count)) > 0 then
  for i = 1, count do
    if try('HEXISTS', KEYS[i], ARGV[width * (i - 1) + 1]) == 1 then
      return nil -- this command has come before, see acquire.lua
    end
  end
  return call('EXISTS', unpack(KEYS, 1, count)) > 0 and 0 or nil
end
-- include time
local clocks, last = {}, call('MGET', unpack(KEYS, 2 * count + 1))
for i = 1, count do
  if last[i] and last[i] >= now then
    return nil -- the token has to be a greater one, see next_token.lua
  end
  clocks[2 * i - 1], clocks[2 * i] = KEYS[2 * count + i], now
end
call('MSET', unpack(clocks))
for i = 1, count do
  local owner, lease = ARGV[width * (i - 1) + 1], width > 1 and ARGV[width * i] or '30000'
  local mode = lease == '30000' and 'x' .. now or 'x' .. now .. ' ' .. lease
  -- Two fields, unless a lock is named twice.
  if try('HSET', KEYS[i], owner, '1', 'mode', mode) ~= 2 or try('PEXPIRE', KEYS[i], lease) ~= 1 then
    call('DEL', unpack(KEYS, 1, i))
    return nil
  end
end
return now
