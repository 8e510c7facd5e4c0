-- Takes the lock, which has room for the form, for a hold. All but the fast path and take_all use it. A Redis user
-- who may write hashes but not set expiries must not leave a lock that never ends. Returns what the
-- owner has of it then; or nil and the error.
-- Uses call, lock; lock.lua, next_token.lua, room.lua, write.lua. Sets kind, mode, number.
local function take(owner, hold, form, lease, more)
  local before, token = mode, next_token()
  local its = {token = token, lease = lease, holds = hold, count = 1, more = more, left = length_of(lease), form = form}
  kind = form == '' and 'x' or string.sub(form, 1, 1)
  if kind == 'h' then
    number = token
  elseif kind == 'i' then
    number = (before == '' and 0 or number) + 1
  elseif before == '' or its.left < LOOK_MS then
    number = '' -- the cached expiry does not hold any more
  end
  local lasts = kind ~= 'x' and call('PTTL', lock) -- who may not read it must not write
  write(owner, its)
  local failure = prolong(its.left, lasts)
  if not failure then
    return its
  end
  mode = before -- the next one may be refused as well
  if mode == '' then
    call('DEL', lock)
  else
    remove(owner)
    call('HSET', lock, 'mode', mode)
  end
  return nil, failure
end
