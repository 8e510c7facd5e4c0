-- Frees several locks: all, if nobody else has to do with any; otherwise none. Those are sent one by one then, to
-- release.lua.
--
-- KEYS     the locks
-- ARGV     of each lock: owner, and the mode that it has then
--
-- Returns  {heard, …} of each; nil: nothing was done. See release.lua
local try = redis.pcall
-- include pubsub
for i = 1, #KEYS do
  local held = try('HMGET', KEYS[i], ARGV[2 * i - 1], 'mode')
  if held[1] ~= '1' or held[2] ~= ARGV[2 * i] then
    return nil
  end
end
redis.call('DEL', unpack(KEYS))
local heard = {}
for i = 1, #KEYS do
  heard[i] = tonumber(try(PUBLISH, 'redisson_lock__channel:{' .. KEYS[i] .. '}', '0')) or -1
end
return heard
