-- Takes several locks for one or more calls: all, if all are free and nobody waits for any; otherwise none. Those are
-- sent one by one then, to acquire.lua. So what is sent twice counts once.
--
-- KEYS     the locks, those of one call after the other, and as many of each; then their queues, then the fencing clocks
--          of their hash slots
-- ARGV     of each call the owner, which is the hold; or of each call owner and lease in ms
--
-- Returns  the token of all; nil: nothing was done; 0: nothing was done, for a lock is taken
local call, try, keys, args = redis.call, redis.pcall, KEYS, ARGV
local count = #keys / 3
local width = tonumber(args[2]) and 2 or 1
if call('EXISTS', unpack(keys, 1, 2 * count)) > 0 then
  -- If the first owner has its lock this command has come before, see acquire.lua.
  return call('EXISTS', unpack(keys, 1, count)) > 0 and try('HEXISTS', keys[1], args[1]) == 0 and 0 or nil
end
-- include time
local clocks, last = {}, call('MGET', unpack(keys, 2 * count + 1))
for i = 1, count do
  if last[i] and last[i] >= now then
    return nil -- the token has to be a greater one, see next_token.lua
  end
  clocks[2 * i - 1], clocks[2 * i] = keys[2 * count + i], now
end
call('MSET', unpack(clocks))
local each = width * count / #args -- so many locks a call has
for first = 1, count, each do
  local n = width * (first - 1) / each
  local owner, lease = args[n + 1], width > 1 and args[n + 2] or '30000'
  local mode = lease == '30000' and 'x' .. now or 'x' .. now .. ' ' .. lease
  for i = first, first + each - 1 do
    -- Two fields, unless a lock is named twice. Whoever may not copy writes.
    if (i == first or try('COPY', keys[first], keys[i]) ~= 1)
      and (try('HSET', keys[i], owner, '1', 'mode', mode) ~= 2 or try('PEXPIRE', keys[i], lease) ~= 1) then
      call('DEL', unpack(keys, 1, i))
      return nil
    end
  end
end
return now
