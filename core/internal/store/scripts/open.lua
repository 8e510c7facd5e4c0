-- Opens the barging window, in which those outside the queue may take a free lock: once in each 50 ms
-- in which there are some, after that of the last token. They are subscribed to the main channel
-- only; each process of the queue is, and to one of its own. Where subscribers cannot be counted, it
-- is once a second. Tells them, and the process of the first wait that is subscribed. Returns
-- whether it has.
local function opens(token)
  local every = COUNTS and 5e4 or 1e6
  if math.floor(now / every) == math.floor(token / every) then
    return false
  end
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
  local counts = subscribers(channels)
  local outside, first = 1, subscribed[1]
  if counts then
    outside, first = 2 * counts[to_all], nil
    for _, count in pairs(counts) do
      outside = outside - count
    end
    for _, channel in ipairs(subscribed) do
      first = first or counts[channel] > 0 and channel or nil
    end
  end
  if not first or outside <= 0 then
    return false
  end
  tell('00')
  tell('open', first)
  return true
end
