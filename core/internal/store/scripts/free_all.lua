-- Frees several locks for one or more calls: of each call all, if nobody else has to do with any; otherwise none. What
-- was not done is sent to release.lua then, lock by lock.
--
-- KEYS     the locks, those of one call after the other, and as many of each
-- ARGV     of each call: owner, and the mode that its locks have then
--
-- Returns  of each call {heard .. first owner, for each lock, see release.lua; or nil: nothing was done, …}; of a lone call that alone
local try, keys, args = redis.pcall, KEYS, ARGV
-- include pubsub
local each = 2 * #keys / #args -- so many locks a call has
local freed, count, replies, name = {}, 0, {}, args[1]
for n = 1, #args, 2 do
  local first, ours, reply = each * (n - 1) / 2 + 1, true, each > 1 and {}
  for i = first, first + each - 1 do
    local held = try('HMGET', keys[i], args[n], 'mode')
    ours = ours and held[1] == '1' and held[2] == args[n + 1]
  end
  for i = first, ours and first + each - 1 or 0 do
    count = count + 1
    freed[count] = keys[i]
    local heard = try(PUBLISH, CHANNEL .. keys[i] .. '}', '0')
    heard = heard == 0 and name or (tonumber(heard) or 0) .. name
    if each > 1 then
      reply[i - first + 1] = heard
    else
      reply = heard
    end
  end
  replies[(n + 1) / 2] = ours and reply
end
if count > 0 then
  redis.call('DEL', unpack(freed))
end
return #args > 2 and replies or replies[1]
