-- Takes a free lock, or enters one that the owner already holds. When it is busy,
-- the process can stand in line: then it is told when its turn has come.
-- Sent twice with the same hold, it counts once.
--
-- KEYS[1]  the lock, a hash
-- KEYS[2]  the lock's last fencing token
-- KEYS[3]  tombstone of this hold: exists when the caller has given it up
-- KEYS[4]  the line, a sorted set of processes. Score: since when it waits, in µs;
--          negative: its turn has come, and lasts until then, in ms
-- ARGV[1]  owner: the hash field that counts holds
-- ARGV[2]  hold: the hash field that marks this one; 1 for the outermost, 0 for a re-entry
-- ARGV[3]  lease in ms, negative when it is fixed (nobody renews it)
-- ARGV[4]  dedup window in ms from now, 0 for none
-- ARGV[5]  token of the lock to enter, '' when a free lock will do
-- ARGV[6]  how long the last token is kept, in ms
-- ARGV[7]  process, '' to stay out of the line
-- ARGV[8]  owner that hands the lock over; may be missing
-- ARGV[9]  the hold of that owner, which ends
--
-- Returns  {1, token, lease, ttl, outermost}  held; lease and ttl in ms, lease negative when fixed
--          {2, ttl, exact}  busy; exact is 1 when nothing will lengthen the ttl
--          {3}              the lock to enter is gone
--          {4}              this hold was given up before the script arrived
--          {5}              nothing was handed over: the lock is gone, or has more holds
local call = redis.call
local lock, owner, hold, lease, process = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[7]

-- The clock of Redis in µs, or one more than the last token. 16 digits until
-- the year 2286, so that tokens compare as text.
local function next_token()
  local now = call('TIME')
  local token = now[1] .. string.sub('00000' .. now[2], -6)
  local last = call('SET', KEYS[2], token, 'PX', ARGV[6], 'GET')
  if last and token <= last then
    token = string.format('%.0f', tonumber(last) + 1)
    call('SET', KEYS[2], token, 'PX', ARGV[6])
  end
  return token
end

-- The process keeps its place if it has one; if it was its turn, somebody outside the
-- line was faster, and it stays first. Who waits asks every second.
local function stand_in_line(now)
  local since = call('ZSCORE', KEYS[4], process)
  if not since then
    call('ZADD', KEYS[4], now[1] .. string.sub('00000' .. now[2], -6), process)
  elseif tonumber(since) < 0 then
    call('ZADD', KEYS[4], '1e14', process)
  end
  call('PEXPIRE', KEYS[4], 5000)
end

local free, line
if ARGV[8] then
  local held = call('HMGET', lock, ARGV[9], ARGV[8], 'latchkey:line')
  if not held[1] or held[2] ~= '1' then
    return {5}
  end
  if call('EXISTS', KEYS[3]) == 1 then
    return {4}
  end
  call('DEL', lock)
  if process ~= '' then
    call('ZREM', KEYS[4], process)
  end
  free, line = true, held[3]
else
  local found = call('EXISTS', lock, KEYS[3], KEYS[4])
  free = found == 0
  if found > 0 then
    if call('EXISTS', KEYS[3]) == 1 then
      return {4}
    end
    line = call('EXISTS', KEYS[4]) == 1
    free = line and found == 1
  end
end

if free then
  if ARGV[5] ~= '' then
    return {3}
  end
  if line and not ARGV[8] then
    local first = call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
    if first[1] ~= process and tonumber(first[2]) < 0 then
      local now = call('TIME')
      local turn = -first[2] - now[1] * 1000 - math.floor(now[2] / 1000)
      if turn > 0 then
        if process ~= '' then
          stand_in_line(now)
        end
        return {2, turn, 0}
      end
    end
    if process ~= '' then
      call('ZREM', KEYS[4], process)
    end
  end
  local token = next_token()
  call('HSET', lock, owner, 1, hold, 1, 'latchkey:token', token, 'latchkey:lease', lease)
  if line then
    call('HSET', lock, 'latchkey:line', 1)
  end
  if ARGV[4] ~= '0' then
    local now = call('TIME')
    local keep = now[1] * 1000 + math.floor(now[2] / 1000) + ARGV[4]
    call('HSET', lock, 'latchkey:keep', string.format('%.0f', keep))
  end
  local ttl = math.abs(lease)
  -- A user who may write hashes but not set expiries must not leave a lock that never ends.
  local expiry = redis.pcall('PEXPIRE', lock, ttl)
  if expiry ~= 1 then
    call('DEL', lock)
    return expiry
  end
  return {1, token, tonumber(lease), ttl, 1}
end

if call('HEXISTS', lock, owner) == 1 then
  local held = call('HMGET', lock, 'latchkey:token', 'latchkey:lease')
  local token = held[1]
  if ARGV[5] ~= '' and token ~= ARGV[5] then
    return {3}
  end
  if token then
    lease = held[2]
  else
    -- Redisson took it for this owner: it becomes one of ours as well.
    token = next_token()
    call('HSET', lock, 'latchkey:token', token, 'latchkey:lease', lease)
  end
  if call('HSETNX', lock, hold, 0) == 1 then
    call('HINCRBY', lock, owner, 1)
  end
  local ttl = call('PTTL', lock)
  lease = tonumber(lease)
  if ttl < lease then
    call('PEXPIRE', lock, lease)
    ttl = lease
  end
  return {1, token, lease, ttl, tonumber(call('HGET', lock, hold))}
end

if ARGV[5] ~= '' then
  return {3}
end
local marks = call('HMGET', lock, 'latchkey:window', 'latchkey:lease', 'latchkey:line')
local exact = 0
if marks[1] or (marks[2] and tonumber(marks[2]) < 0) then
  exact = 1
end
if process ~= '' and not marks[1] then
  stand_in_line(call('TIME'))
  if not marks[3] then
    call('HSET', lock, 'latchkey:line', 1)
  end
end
return {2, call('PTTL', lock), exact}
