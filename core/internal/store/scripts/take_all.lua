-- Takes several locks for one or more calls: of each call all, if all are free and nobody waits for any; otherwise
-- none. So what is sent twice counts once. What was not done is sent to acquire.lua then, lock by lock.
--
-- KEYS     the locks, those of one call after the other, and as many of each; then their queues, then the fencing clocks
--          of their hash slots
-- ARGV     of each call the owner, which is the hold; or of each call owner and lease in ms
--
-- Returns  the token of all; or of each call {the token, or nil: nothing was done, or '0': nothing was done, for one of
--          several locks is taken, …}; of a lone call that alone. Each text ends with the first owner
local call, try, keys, args = redis.call, redis.pcall, KEYS, ARGV
local count = #keys / 3
local width = tonumber(args[2]) and 2 or 1
local each = width * count / #args -- so many locks a call has
-- include time
local reply, last = now .. args[1], nil -- when all is done; what the clocks were

-- take takes the locks of some calls.
local function take(from, to)
  local taken = call('EXISTS', unpack(keys, from, to)) > 0
  if taken or call('EXISTS', unpack(keys, count + from, count + to)) > 0 then
    -- If the owner has its lock this command has come before, see acquire.lua.
    return each > 1 and taken and try('HEXISTS', keys[from], args[width * (from - 1) / each + 1]) == 0 and '0' .. args[1] or false
  end
  last = last or call('MGET', unpack(keys, 2 * count + 1))
  local clocks = {}
  for i = from, to do
    if last[i] and last[i] >= now then
      return false -- the token has to be a greater one, see next_token.lua
    end
    local n = 2 * (i - from)
    clocks[n + 1], clocks[n + 2] = keys[2 * count + i], now
  end
  call('MSET', unpack(clocks))
  for first = from, to, each do
    local n = width * (first - 1) / each
    local owner, lease = args[n + 1], width > 1 and args[n + 2] or '30000'
    local mode = lease == '30000' and 'x' .. now or 'x' .. now .. ' ' .. lease
    for i = first, first + each - 1 do
      -- Two fields, unless a lock is named twice. Whoever may not copy writes.
      if (i == first or try('COPY', keys[first], keys[i]) ~= 1)
        and (try('HSET', keys[i], owner, '1', 'mode', mode) ~= 2 or try('PEXPIRE', keys[i], lease) ~= 1) then
        call('DEL', unpack(keys, from, i))
        return false
      end
    end
  end
  return reply
end

local replies = {take(1, count)}
for first = 1, replies[1] ~= reply and each < count and count or 0, each do
  replies[(first - 1) / each + 1] = take(first, first + each - 1)
end
return #replies > 1 and replies or replies[1]
