-- Takes the lock, which has room for the form, for a hold. All but the fast path and take_all use it. A Redis user
-- who may write hashes but not set expiries must not leave a lock that never ends. Returns the token; or nil and the
-- error.
-- Uses call, lock; FURTHER of lock.lua; LOOK_MS of room.lua; next_token, write.lua. Sets kind, mode, number of lock.lua.
local function take(owner, hold, form, lease, more)
  local before, token = mode, next_token()
  local its = {token = token, lease = lease, holds = hold, count = 1, more = more, left = length_of(lease)}
  kind = form == '' and 'x' or string.sub(form, 1, 1)
  if kind == 'h' then
    number = token
  elseif kind == 'i' then
    number = (before == '' and 0 or number) + 1
  elseif before == '' or its.left < LOOK_MS then
    number = '' -- the cached expiry does not hold any more
  end
  if kind == 'p' and owner ~= hold then
    write(owner, nil) -- a holder of that owner that has ended may have had more permits
  end
  write(owner, its)
  for i = 1, (string.match(form, 'w(%d+)$') or 1) - 1 do
    call('HSET', lock, FURTHER .. i .. ':' .. owner, '-')
  end
  local lasts = prolong(its.left)
  if lasts == 1 then
    return token
  end
  mode = before -- the next one may be refused as well
  if mode == '' then
    call('DEL', lock)
  else
    write(owner, nil)
    call('HSET', lock, 'mode', mode)
  end
  return nil, lasts
end
