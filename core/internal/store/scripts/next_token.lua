-- The clock of Redis in µs, or one more than the last token of the slot.
local function next_token(clock, now)
  local token = now
  local last = call('GETSET', clock, token)
  if last and token <= last then
    token = string.format('%.0f', last + 1)
    call('SET', clock, token)
  end
  return token
end
