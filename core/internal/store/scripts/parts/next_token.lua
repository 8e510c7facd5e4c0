-- Fencing tokens. The fencing clock of a hash slot is the last token that was given in it, with a +
-- after it when that was ahead of the clock of Redis.
-- Returns the clock of Redis in µs if that is greater than the last token, else the last token and one.
-- The first token after the clock was set back leaves a TOKEN_GAP.
-- Uses call, clock, now; lock.lua.
local function next_token()
  local last = call('GETSET', clock, now)
  if not last or last < now then
    return now
  end
  local token, ahead = string.match(last, '^(%d+)(%+?)$')
  token = string.format('%.0f', token + ((ahead == '+' or token == now) and 1 or TOKEN_GAP))
  call('SET', clock, token .. '+')
  return token
end
