-- Takes free locks, or enters those that the owner already holds. When one is busy,
-- the process can stand in line: then it is told when its turn has come.
-- Sent twice with the same hold, it counts once.
--
-- KEYS, of each lock
--   [1]  the lock, a hash
--   [2]  the lock's last fencing token
--   [3]  tombstone of this hold: exists when the caller has given it up
--   [4]  the line, a sorted set of processes. Score: since when it waits, in µs;
--        from 1e16 on: no message reaches it, and it asked at 1e16 and so many µs, or did
--        not ask since 3e16 and so many; negative: its turn has come, and lasts until
--        then, in ms. For the members "others" and "polling" see release.lua
-- ARGV[1]  how long the last token is kept, in ms
-- ARGV[2]  process
-- ARGV, of each lock
--   [1]  owner: the hash field that counts holds
--   [2]  hold: the hash field that marks this one; 1 for the outermost, 0 for a re-entry
--   [3]  lease in ms, negative when it is fixed (nobody renews it)
--   [4]  dedup window in ms from now, 0 for none
--   [5]  token of the lock to enter, '' when a free lock will do
--   [6]  '1' when the process stands in line if the lock is busy, else '0'
--
-- Returns  token            a free lock was taken, for the lease asked for
--          {1, token, lease, ttl, outermost}  entered; lease and ttl in ms, lease negative when fixed
--          {2, ttl, exact, 0, unheard}  busy; exact is 1 when nothing will lengthen the
--                           ttl, unheard when messages do not reach the process
--          {3}              the lock to enter is gone
--          {4}              this hold was given up before the script arrived
-- of more than one lock, see batch.lua in package conn
local call = redis.call
local kept, process = ARGV[1], ARGV[2]
local count = #KEYS / 4
local time = call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6) -- µs
local all_free = false -- no lock, tombstone or line existed before
local taken = {}

local function ms()
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- The clock of Redis in µs, or one more than the last token. 16 digits until
-- the year 2286, so that tokens compare as text.
local function next_token(key)
  local token = now
  local last = call('SET', key, token, 'PX', kept, 'GET')
  if last and token <= last then
    token = string.format('%.0f', tonumber(last) + 1)
    call('SET', key, token, 'PX', kept)
  end
  return token
end

-- The process keeps its place if it has one; if it was its turn, somebody outside the
-- line was faster, and it stays first. Who waits asks every second. Returns 1 when
-- messages do not reach the process.
local function stand_in_line(line)
  local unheard = 0
  if call('ZADD', line, 'NX', now, process) == 0 then
    local place = tonumber(call('ZSCORE', line, process))
    if place < 0 then
      call('ZADD', line, '1e14', process)
    elseif place >= 1e16 then
      if place >= 3e16 and 3e16 + now - place > 15e4 then
        call('ZADD', line, 'XX', 'LT', 0, 'polling') -- it did not know, and has waited
      end
      call('ZADD', line, string.format('%.0f', 1e16 + now), process)
      unheard = 1
    end
  end
  call('PEXPIRE', line, 5000)
  return unheard
end

-- For how many ms the lock is reserved for others than this process. A turn lasts
-- 250 ms; what is left of it may be more when the clock was set back.
local function reserved(line, first, until_ms, queues)
  if queues == '1' then
    if first == process then
      return 0
    end
    if first == 'polling' then
      local place = call('ZSCORE', line, process)
      if place and tonumber(place) >= 1e16 then
        return 0
      end
    end
  end
  local turn = until_ms - ms()
  if turn > 250 then
    return 0
  end
  return turn
end

-- What is left of a lock's lease or window in ms, and never more than the whole of it:
-- after the clock was set back it would be. shared: a Redisson client may have given it
-- a longer lease.
local function rest(lock, whole, shared)
  local ttl = call('PTTL', lock)
  whole = whole and math.abs(whole)
  if whole and ttl > whole and not shared then
    call('PEXPIRE', lock, whole)
    return whole
  end
  return ttl
end

local function each(i)
  local lock, tokens, tombstone, line = unpack(KEYS, 4 * i - 3, 4 * i)
  local owner, hold, lease, window, enter, queues = unpack(ARGV, 6 * i - 3, 6 * i + 2)

  local free, others, first = true, false
  if not all_free or taken[lock] then
    local found = call('EXISTS', lock, tombstone, line)
    if found > 0 then
      first = call('ZRANGE', line, 0, 0, 'WITHSCORES')
      others = first[1]
      free = others and found == 1
      if not free and call('EXISTS', tombstone) == 1 then
        return {4}
      end
    end
  end

  if free then
    if enter ~= '' then
      return {3}
    end
    if others then
      if tonumber(first[2]) < 0 then
        local turn = reserved(line, first[1], -first[2], queues)
        if turn > 0 then
          local unheard = 0
          if queues == '1' then
            unheard = stand_in_line(line)
          end
          return {2, turn, 0, 0, unheard}
        end
      end
      if queues == '1' then
        call('ZREM', line, process)
      end
    end
    local token = next_token(tokens)
    call('HSET', lock, owner, '1', hold, '1', 'latchkey:token', token, 'latchkey:lease', lease)
    taken[lock] = true
    if others then
      call('HSET', lock, 'latchkey:line', '1')
    end
    if hold ~= 'latchkey:hold:' .. owner then
      call('HSET', lock, 'latchkey:shared', '1') -- others may enter by that owner, Redisson too
    end
    if window ~= '0' then
      call('HSET', lock, 'latchkey:keep', string.format('%.0f', ms() + window) .. ' ' .. window)
    end
    local ttl = string.gsub(lease, '^%-', '')
    -- A user who may write hashes but not set expiries must not leave a lock that never ends.
    local expiry = redis.pcall('PEXPIRE', lock, ttl)
    if expiry ~= 1 then
      call('DEL', lock)
      return expiry
    end
    return token
  end

  local held = call('HMGET', lock, owner, 'latchkey:token', 'latchkey:lease', 'latchkey:window', 'latchkey:line',
    'latchkey:shared')
  local shared = held[6]
  if held[1] then
    local token = held[2]
    if enter ~= '' and token ~= enter then
      return {3}
    end
    if token then
      lease = held[3]
    else
      -- Redisson took it for this owner: it becomes one of ours as well.
      token = next_token(tokens)
      shared = '1'
      call('HSET', lock, 'latchkey:token', token, 'latchkey:lease', lease, 'latchkey:shared', shared)
    end
    if call('HSETNX', lock, hold, 0) == 1 then
      call('HINCRBY', lock, owner, 1)
    end
    lease = tonumber(lease)
    local ttl = rest(lock, lease, shared)
    if ttl < lease then
      call('PEXPIRE', lock, lease)
      ttl = lease
    end
    return {1, token, lease, ttl, tonumber(call('HGET', lock, hold))}
  end

  if enter ~= '' then
    return {3}
  end
  local exact = 0
  if held[4] or (held[3] and tonumber(held[3]) < 0) then
    exact = 1
  end
  local unheard = 0
  if queues == '1' and not held[4] then
    unheard = stand_in_line(line)
    if not held[5] then
      call('HSET', lock, 'latchkey:line', '1')
    end
  end
  return {2, rest(lock, tonumber(held[4] or held[3]), shared), exact, 0, unheard}
end

if count > 1 then
  local keys = {}
  for i = 1, #KEYS, 4 do
    keys[#keys + 1], keys[#keys + 2], keys[#keys + 3] = KEYS[i], KEYS[i + 2], KEYS[i + 3]
  end
  all_free = call('EXISTS', unpack(keys)) == 0
end
