-- Whose process waits, and whether it is subscribed.
-- Uses pubsub.lua, tell.lua.

-- Returns hold, form and owner of a queue entry.
local function parts_of(member)
  local hold, form, owner = string.match(member, '^([^ |]+)|?(%w*) ?(.*)$')
  return hold, form, owner == '' and hold or owner
end

-- The channel of the process of a hold. It has a digest, so that a user who may list channels cannot derive holds from it.
local function process_channel(hold)
  return to_all .. ':' .. redis.sha1hex(string.match(hold, '^(.*):'))
end

-- How many connections subscribe to each of some channels; nil where that cannot be known.
-- What PUBLISH returns comes too late. It does not count connections to a replica, which get the
-- message as well; and a grant that somebody may have received cannot be taken back.
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
