-- Frees several locks for one or more calls: of each call all, if nobody else has to do with any; otherwise none. What
-- was not done is sent to release.lua then, lock by lock.
--
-- KEYS     the locks, those of one call after the other, and as many of each
-- ARGV     of each call: owner, and the mode that its locks have then
--
-- Returns  of each call {a text: how many have heard, as release.lua says, of each lock, with ',' between them, and the
--          first owner; or nil: nothing was done, …}; of a lone call that alone
local try, keys, args = redis.pcall, KEYS, ARGV
-- include pubsub
local each = 2 * #keys / #args -- so many locks a call has
local freed, count, replies = {}, 0, {}
for n = 1, #args, 2 do
  local first, ours, reply = each * (n - 1) / 2 + 1, true, ''
  for i = first, first + each - 1 do
    local lock, owner, simple_mode = keys[i], args[n], args[n + 1]
    -- include simple
    ours = ours and simple
  end
  for i = first, ours and first + each - 1 or 0 do
    count = count + 1
    freed[count] = keys[i]
    local heard = try(PUBLISH, CHANNEL .. keys[i] .. '}', '0')
    reply = reply .. (i > first and ',' or '') .. (heard == 0 and '' or tonumber(heard) or 0)
  end
  replies[(n + 1) / 2] = ours and reply .. args[1]
end
if count > 0 then
  redis.call('DEL', unpack(freed))
end
return #args > 2 and replies or replies[1]
