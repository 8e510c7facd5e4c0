-- Says whether those outside the queue get their chance: once in each 50 ms in which there
-- are some. They hear the main channel only; each process of the queue hears that, and one
-- of its own. Where nobody can be counted they must not cost much.
local function opens(lock, queue, token, hold)
  local every = COUNTS and 5e4 or 1e6
  if math.floor(now / every) == math.floor(token / every) then
    return false
  end
  local own = process_channel(lock, hold)
  local channels, known = {channel_of(lock), own}, {[own] = true}
  local head
  local waits = call('ZRANGE', queue, 0, 99, 'WITHSCORES')
  for i = 1, #waits, 2 do
    local score = tonumber(waits[i + 1])
    if score < TOMBSTONE then
      local channel = process_channel(lock, string.match(waits[i], '^%S+'))
      head = head or score % 1 == 0 and channel
      if not known[channel] then
        known[channel], channels[#channels + 1] = true, channel
      end
    end
  end
  if not head then
    return false
  end
  local counts = subscribers(unpack(channels))
  if counts then
    local outside = counts[1]
    for i = 2, #counts do
      outside = outside - counts[i]
    end
    if outside <= 0 then
      return false
    end
  end
  tell(channels[1], '00')
  tell(head, 'open')
  return true
end
