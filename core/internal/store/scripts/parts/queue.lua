-- The queue of a lock is a sorted set with an entry for each process that waits, and for each owner
-- that callers have chosen. An entry is the member <hold>[|<form>][ <owner>]. The form is as in
-- room.lua, and absent when it is exclusive; so is the owner, unless the caller has chosen one.
--
--   score               the entry
--   its arrival in µs   its process is subscribed, or about to be
--   the same + POLLS    its process is not: it asks every 10 to 150 ms. A new entry of
--                       that kind gets an arrival that is LATER
--   from TOMBSTONE on   was given up: an acquisition of this hold that arrives later is
--                       refused. The rest is the µs at which the tombstone may go
--
-- An entry that polls has a second member, ! and its own: a tombstone of nothing, which lasts while the process
-- asks. A grant passes nothing to an entry of that kind whose process asks no more.
--
-- Uses call, queue, now.
local TOMBSTONE = 5e16
local POLLS = 0.5
-- In µs: a grant to a process that polls costs others time, as it finds out late; it asks again by then.
local LATER = 4e5
local ASKS = 4e6

local function member_of(owner, hold, form)
  return hold .. (form == '' and '' or '|' .. form) .. (owner == hold and '' or ' ' .. owner)
end

-- An entry that is there keeps its place, by its score. Returns 1 when it is new.
local function enqueue(member, score, polls)
  local new, lasts = score and 0 or 1, call('PTTL', queue) -- who may not read it must not write
  if not score or score < TOMBSTONE and (polls ~= (score % 1 > 0) or score > now + LATER + POLLS) then
    local since = math.floor(score or now + LATER) -- or less, when the clock was set back
    score = polls and math.min(since, now + LATER) + POLLS or math.min(since, now)
    call('ZADD', queue, string.format('%.1f', score), member)
  end
  if polls then
    redis.pcall('ZADD', queue, string.format('%.0f', TOMBSTONE + now + ASKS), '!' .. member) -- not when out of memory
  end
  -- Waiting calls ask every second. A queue whose processes are dead must not last; a tombstone lasts for a minute.
  if (lasts < 4000 or lasts > 60000) and redis.pcall('PEXPIRE', queue, lasts < 4000 and 5000 or 60000) ~= 1 then
    call('ZREM', queue, member, '!' .. member) -- of a user who may not have it end
  end
  return new
end
