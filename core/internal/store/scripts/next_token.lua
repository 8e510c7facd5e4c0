-- The clock of Redis in µs; where the last token of the slot is not behind it, a greater
-- one. The fencing clock then has a + behind its token. The first token after the clock was
-- set back leaves room for those that a process gave in memory, under a lock that ended
-- without a release.
local PASSED_ON = 1e4
local function next_token(clock, now)
  local last = call('GETSET', clock, now)
  if not last or last < now then
    return now
  end
  local token, ahead = string.match(last, '^(%d+)(%+?)$')
  token = string.format('%.0f', token + ((ahead == '+' or token == now) and 1 or PASSED_ON))
  call('SET', clock, token .. '+')
  return token
end

-- No later token of the slot is as small as this one. It returns an error.
local function lift(clock, token)
  local last = call('GET', clock)
  if not last or last < token then
    local written = redis.pcall('SET', clock, token)
    if written.err then
      return written
    end
  end
end
