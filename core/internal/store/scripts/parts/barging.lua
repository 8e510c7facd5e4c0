-- The barging window, in which those outside the queue may take a free lock, as Redisson. Time is cut into
-- slots of 50 ms. A release opens the window if somebody waits outside the queue and the ended lock's
-- token is from an earlier slot. Each latchkey process that waits is subscribed twice: to the lock's channel, and to
-- one of its own. So the subscribers of the lock's channel less those of the processes' are outside. Where they cannot
-- be counted, somebody is taken to be outside, and a slot is a second long.
-- Tells those outside, and the process of the first entry that is subscribed.
-- It sets next_one if it has.
-- Uses call, ended, hold, now, queue; grant_or_free.lua, pubsub.lua, queue.lua, subscribers.lua, tell.lua. Sets next_one.
local every = COUNTS and 5e4 or 1e6
if math.floor(now / every) ~= math.floor(ended / every) then
  local channels, subscribed = {to_all, process_channel(hold)}, {}
  local queued = call('ZRANGE', queue, 0, 99, 'WITHSCORES')
  for i = 1, #queued, 2 do
    local score = tonumber(queued[i + 1])
    if score < TOMBSTONE then
      local channel = process_channel((parts_of(queued[i])))
      channels[#channels + 1] = channel
      if score % 1 == 0 then
        subscribed[#subscribed + 1] = channel
      end
    end
  end
  local counts, first = subscribers(channels), nil
  local outside = counts and 2 * counts[to_all] or 1 -- the loop subtracts it once, too
  for _, count in pairs(counts or {}) do
    outside = outside - count
  end
  for _, channel in ipairs(subscribed) do
    first = first or (not counts or counts[channel] > 0) and channel or nil
  end
  if first and outside > 0 then
    tell('00')
    tell('open', first)
    next_one = true
  end
end
