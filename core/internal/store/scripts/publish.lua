-- Messages.
--
--   0      to all: the lock is free, or its dedup window has opened
--   00     to all: it is free for those outside the queue. Redisson takes that for a 0
--   open   to the process of the first wait that is subscribed: the same
--   <SHA-1 of a hold> <token> <clock of Redis in µs>   to its process: the lock was granted to the hold

local function channel_of(lock)
  return 'redisson_lock__channel:{' .. lock .. '}'
end

-- The channel of the process of a hold. Who may list channels cannot derive holds from it.
local function process_channel(hold)
  return channel_of(lock) .. ':' .. redis.sha1hex(string.match(hold, '^(.*):'))
end

-- Publishes. -1 is no permission: then waiting calls poll.
local function tell(channel, message)
  return tonumber(redis.pcall(PUBLISH, channel, message)) or -1
end

-- How many connections subscribe to each of some channels; nil where that cannot be known.
-- What PUBLISH returns would come too late: connections to a replica, which it does not
-- count, hear the message as well, and a lock of which somebody may have heard cannot be
-- taken back.
local function subscribers(channels)
  local replies = COUNTS and redis.pcall('PUBSUB', PUBLISH == 'SPUBLISH' and 'SHARDNUMSUB' or 'NUMSUB', unpack(channels))
  if not replies or replies.err then
    return nil
  end
  local counts = {}
  for i = 1, #replies, 2 do
    counts[replies[i]] = tonumber(replies[i + 1])
  end
  return counts
end
