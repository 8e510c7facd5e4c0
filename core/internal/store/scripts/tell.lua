-- Messages.
--
--   0      to all: the lock is free, or its dedup window has opened
--   00     to all: it is free for those outside the queue. Redisson takes that for a 0
--   open   to the process of the first wait that is subscribed: the same
--   <SHA-1 of a hold> <token> <clock of Redis in µs>   to its process: the lock was granted to the hold
local to_all = 'redisson_lock__channel:{' .. lock .. '}'

-- Publishes, to all or by another channel. Returns how many have heard it; -1 without the permission: then
-- waiting calls poll.
local function tell(message, channel)
  return tonumber(redis.pcall(PUBLISH, channel or to_all, message)) or -1
end
