-- Fencing tokens. The fencing clock of a hash slot has the last token that was given in it,
-- with a + behind it when that is ahead of the clock of Redis.
-- Returns the clock of Redis in µs, or a greater token where the last one is not behind it.
-- The first one after the clock was set back leaves a margin.
local function next_token()
  local last = call('GETSET', clock, now)
  if not last or last < now then
    return now
  end
  local token, ahead = string.match(last, '^(%d+)(%+?)$')
  token = string.format('%.0f', token + ((ahead == '+' or token == now) and 1 or MARGIN))
  call('SET', clock, token .. '+')
  return token
end
