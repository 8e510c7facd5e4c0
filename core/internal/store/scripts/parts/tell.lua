-- Messages. Those to all use the lock's channel; each process has one of its own, see subscribers.lua.
--
--   0      to all: ask again. The lock is free, a dedup window has begun, or an answer was stored
--   00     to all: the barging window. The lock is free for those outside the queue: Redisson takes
--          this for a 0, a latchkey process does nothing
--   open   to one process: ask again, after a barging window of 3 ms
--   <SHA-1 of a hold> <token> <clock of Redis in µs>   to its process: the lock was granted to the hold
--
-- Uses lock; pubsub.lua.
local to_all = CHANNEL .. lock .. '}'

-- Publishes, to all or by another channel. Returns how many connections get it; 0 without the permission: then
-- waiting calls find out by asking again.
local function tell(message, channel)
  return tonumber(redis.pcall(PUBLISH, channel or to_all, message)) or 0
end
