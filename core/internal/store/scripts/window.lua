-- The dedup window that is to open, as it is in latchkey:keep.
local function keep_of(window)
  return string.format('%.0f', now + window * 1000) .. ' ' .. window
end

-- What is left of it, in ms.
local function left_of(keep)
  local ends, whole = string.match(keep, '(%d+) (%d+)')
  return math.min(math.ceil((ends - now) / 1000), tonumber(whole)) -- the clock may have been set back
end
