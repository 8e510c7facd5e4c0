-- Says whether those outside the queue get their chance: once in each 50 ms in which there
-- are some. They hear the main channel only; each process of the queue hears that, and one
-- of its own. Where subscribers cannot be counted, it is once a second. Tells them, and the
-- process of the first wait that hears.
local function opens(lock, queue, token, hold)
  local every = COUNTS and 5e4 or 1e6
  if math.floor(now / every) == math.floor(token / every) then
    return false
  end
  local own = process_channel(lock, hold)
  local channels, place, hearing = {channel_of(lock), own}, {[own] = 2}, {}
  local queued = call('ZRANGE', queue, 0, 99, 'WITHSCORES')
  for i = 1, #queued, 2 do
    local score = tonumber(queued[i + 1])
    if score < TOMBSTONE then
      local channel = process_channel(lock, string.match(queued[i], '^%S+'))
      if not place[channel] then
        channels[#channels + 1] = channel
        place[channel] = #channels
      end
      if score % 1 == 0 then
        hearing[#hearing + 1] = place[channel]
      end
    end
  end
  local counts = subscribers(unpack(channels))
  local outside, first = 1, hearing[1]
  if counts then
    outside, first = counts[1], nil
    for i = 2, #counts do
      outside = outside - counts[i]
    end
    for _, i in ipairs(hearing) do
      first = first or counts[i] > 0 and i or nil
    end
  end
  if not first or outside <= 0 then
    return false
  end
  tell(channels[1], '00')
  tell(channels[first], 'open')
  return true
end
