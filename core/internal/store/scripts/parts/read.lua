-- Reads the lock.
-- Uses call, lock, owner; lock.lua, string.lua. Sets digest, held, keep, kind, mine, mode, number, stays.
do
  local fields = redis.pcall('HMGET', lock, 'mode', owner, HOLDER .. owner, 'latchkey:keep')
  mode, keep, kind, digest, stays, mine, held = fields[1] or '', fields[4], nil, nil, 0, nil, nil
  if fields.err then
    kind = is_string(fields) and 'f' or call('HMGET', lock, 'mode') -- which fails, too
  elseif mode == '' then
    kind = call('EXISTS', lock) == 1 and 'r' or nil
    mine = fields[2] and {count = tonumber(fields[2]), holds = '-'} or nil
  else
    local what
    kind, number, what = string.match(mode, '^([xsphiw])(%d*)(.*)$')
    if kind == 'x' and number ~= '' then
      local lease, holds, more = string.match(what, '^ ?(%-?%d*) ?(.-)(%+?)$')
      held = {token = number, lease = lease == '' and '30000' or lease, holds = holds == '' and owner or holds,
        more = more == '+', count = tonumber(fields[2])}
      mine = fields[2] and held or nil
    else
      digest, stays = string.match(what or '', '^ (%x+) ?(%d*)$')
      stays = stays or 0
      if not kind or kind == 'x' or what ~= '' and not digest then
        kind = string.find(mode, '^%l%d') and 'u' or '?'
      else
        mine = parse_holder(fields[3])
      end
    end
  end
end
