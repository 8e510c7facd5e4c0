-- Whether a lock has room for one more holder. Nothing else knows how many fit.
-- Uses call, lock, now; holders.lua, lock.lua, write.lua. Sets kind, mode, number.
local LOOK_MS = 1000 -- for at most so long a full lock's earliest expiry is cached, and its holders are not looked through

-- Says whether there is room for a form: '' exclusive, s shared, p<n> one of n permits, p<n>w<w> w of them. n is of the
-- call, and not stored in the lock.
local function has_room(form)
  local n, weight = string.match(form, '^p(%d+)w?(%d*)$')
  return not kind or kind == string.sub(form, 1, 1)
    and call('HLEN', lock) - 1 + (tonumber(weight) or 1) <= tonumber(n or math.huge) -- the mode is no permit
end

-- The same, but removes holders that have ended, where they are in the way, and makes the lock last no longer than the
-- others. To resume a lock the form is h, for an attempt at an idempotent request i: there is room for one holder.
-- Only a later version knows whether there is room for a form of its own: its process asks within a second.
local function makes_room(form)
  local known = form == '' or string.find(form, '^[shi]$') or string.find(form, '^p%d+w?%d*$')
  if not known or kind and not string.find(kind, SEVERAL) then
    return kind == form and not next(holders(true))
  elseif has_room(form) then
    return true
  end
  local wait = (tonumber(number) or 0) - now
  if wait > 0 and wait <= LOOK_MS * 1000 then
    return false
  end
  local first, last = math.huge, 0
  for _, holder in pairs(holders(true)) do
    first, last = math.min(first, holder.left), math.max(last, holder.left)
  end
  if last == 0 then
    call('DEL', lock)
    kind, mode = nil, ''
  elseif call('PTTL', lock) > last then
    call('PEXPIRE', lock, last)
  end
  if has_room(form) then
    return true
  end
  number = string.format('%.0f', now + math.min(first - 1, LOOK_MS) * 1000)
  redis.pcall('HSET', lock, 'mode', mode_of())
  return false
end

-- Says whether others hold the lock when a holder is gone that had so many ms left. They do for sure if the lock lasts
-- longer. Otherwise those that have ended are removed: an exclusive holder fits only if none is left.
local function has_others(left)
  return call('HLEN', lock) > 1 and (call('PTTL', lock) > left or not makes_room(''))
end
