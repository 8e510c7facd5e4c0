-- The holders of a lock that is shared, has permits, was handed over, or is of a request that
-- counts once: a field for each.
--
--   field                    value
--   mode                     s or p: shared, or permits. A number after it: nobody ends before
--                            that µs, or at most LOOK_MS later. h<token> <digest of the ticket>
--                            <ms>: was handed over; without a holder it is parked for so long.
--                            i<attempts> <digest of the request> <ms>: of a request. Without a
--                            holder it is not known whether the last attempt has done its work
--   latchkey:holder:<owner>  <end in µs> <lease> <token> <hold>[ <hold>]…
--     lease                  in ms; negative or 0: see hash.lua
--
-- A holder ends by the clock of Redis, for each script that reads it. The expiry of the lock
-- is that of the last one; if it was handed over, it is parked from then on, and if it is of a
-- request, that is known for so long.
local HOLDER = 'latchkey:holder:'
local LOOK_MS = 1000 -- the holders of a lock that has no room are looked through so rarely at most

-- Returns s, p, h or i; nil when the lock is free or of another kind.
local function kind_of(mode)
  mode = mode or ''
  return string.match(mode, '^([sp])%d*$') or string.match(mode, '^([hi])%d+ %x+ %d+$')
end

-- Says whether a lock of some kind has one holder at most, and lasts without one.
local function lasts(kind)
  return kind == 'h' or kind == 'i'
end

local function length_of(lease)
  return lease == '0' and GRANT_MS or math.abs(lease)
end

local function write_holder(lock, owner, holder, now)
  local ends = string.format('%.0f', now + holder.left * 1000)
  call('HSET', lock, HOLDER .. owner, ends .. ' ' .. holder.lease .. ' ' .. holder.token .. ' ' .. holder.holds)
end

-- Returns nil when there is none, or it has ended. What is left of it, in ms, is no more than
-- its lease: the clock may have been set back.
local function parse_holder(text, now)
  local ends, lease, token, holds = string.match(text or '', '^(%d+) (%-?%d+) (%d+) (.+)$')
  local rest = ends and math.ceil((ends - now) / 1000) or 0
  local left = ends and math.min(rest, length_of(lease)) or 0
  return left > 0 and {left = left, cut = left < rest, lease = lease, token = token, holds = holds} or nil
end

local function read_holder(lock, owner, now)
  return parse_holder(call('HGET', lock, HOLDER .. owner), now)
end

local function holds(holder, hold)
  return string.find(' ' .. holder.holds .. ' ', ' ' .. hold .. ' ', 1, true)
end

-- Has the lock last as long as one of its holders.
local function outlast(lock, mode, left)
  left = left + (string.match(mode, '^[hi]%d+ %x+ (%d+)$') or 0)
  return call('PTTL', lock) >= left and 1 or redis.pcall('PEXPIRE', lock, left)
end

-- Takes out the holders that have ended. Returns the others by their owners, and how many.
local function living(lock, now)
  local holders, count = {}, 0
  local fields = call('HGETALL', lock)
  for i = 1, #fields, 2 do
    local owner = string.match(fields[i], '^' .. HOLDER .. '(.*)$')
    local holder = owner and parse_holder(fields[i + 1], now)
    if holder then
      holders[owner], count = holder, count + 1
    elseif owner then
      call('HDEL', lock, fields[i])
    end
  end
  return holders, count
end

-- How long a lock that was handed over lasts at most.
local function parked_for(lock, mode, now)
  local whole = tonumber(string.match(mode, '%d+$'))
  local _, holder = next((living(lock, now)))
  return whole + (holder and holder.left or 0)
end

-- Is living, and has the lock last no longer than they do. Returns how many they are, and in
-- how many ms the first of them ends.
local function survivors(lock, now)
  local holders, count = living(lock, now)
  local first, last = math.huge, 0
  for owner, holder in pairs(holders) do
    first, last = math.min(first, holder.left), math.max(last, holder.left)
    if holder.cut then -- not others: rounded up each time, none would end
      write_holder(lock, owner, holder, now)
    end
  end
  if count == 0 then
    call('DEL', lock)
  elseif call('PTTL', lock) > last then
    call('PEXPIRE', lock, last)
  end
  return count, first
end

-- Says whether a lock of some kind has room for a form: '' exclusive, s shared, p<n> one of n
-- permits. A nil kind is a free lock.
local function has_room(lock, kind, form, now)
  if not kind or lasts(kind) then
    return not kind
  end
  local most = kind == string.sub(form, 1, 1) and (tonumber(string.sub(form, 2)) or math.huge) or 0
  -- The mode is no holder.
  if call('HLEN', lock) <= most then
    return true
  end
  local looked = (tonumber(string.sub(call('HGET', lock, 'mode'), 2)) or 0) - now
  if looked > 0 and looked <= LOOK_MS * 1000 then
    return false
  end
  local count, first = survivors(lock, now)
  if count == 0 or count < most then
    return true
  end
  redis.pcall('HSET', lock, 'mode', kind .. string.format('%.0f', now + math.min(first - 1, LOOK_MS) * 1000))
  return false
end
