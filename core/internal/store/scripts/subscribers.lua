-- The channel of the process of a hold. Who may list channels cannot derive holds from it.
local function process_channel(hold)
  return to_all .. ':' .. redis.sha1hex(string.match(hold, '^(.*):'))
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
