-- Frees several locks: all, if nobody else has to do with any; otherwise none. Those are sent one by one then, to
-- release.lua.
--
-- KEYS     the locks, those of one call after the other, and as many of each
-- ARGV     of each call: owner, and the mode that its locks have then
--
-- Returns  {heard, …} of each; nil: nothing was done. See release.lua
local try, keys, args = redis.pcall, KEYS, ARGV
-- include pubsub
local each = 2 * #keys / #args -- so many locks a call has
for n = 1, #args, 2 do
  for i = each * (n - 1) / 2 + 1, each * (n + 1) / 2 do
    local held = try('HMGET', keys[i], args[n], 'mode')
    if held[1] ~= '1' or held[2] ~= args[n + 1] then
      return nil
    end
  end
end
redis.call('DEL', unpack(keys))
local heard = {}
for i = 1, #keys do
  heard[i] = tonumber(try(PUBLISH, 'redisson_lock__channel:{' .. keys[i] .. '}', '0')) or -1
end
return heard
