-- Makes all later tokens of the slot greater than this one. Returns an error or nil.
-- Uses call, clock.
local function raise_clock(token)
  local last = call('GET', clock)
  local written = (not last or last < token) and redis.pcall('SET', clock, token)
  return written and written.err and written or nil
end
