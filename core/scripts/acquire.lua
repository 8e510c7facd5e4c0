-- Takes a free lock, or enters one that the owner already holds.
-- Sent twice with the same hold, it counts once.
--
-- KEYS[1]  the lock, a hash
-- KEYS[2]  the lock's last fencing token
-- KEYS[3]  tombstone of this hold: exists when the caller has given it up
-- ARGV[1]  owner: the hash field that counts holds
-- ARGV[2]  hold: the hash field that marks this one; 1 for the outermost, 0 for a re-entry
-- ARGV[3]  lease in ms, negative when it is fixed (nobody renews it)
-- ARGV[4]  dedup window in ms from now, 0 for none
-- ARGV[5]  token of the lock to enter, '' when a free lock will do
-- ARGV[6]  how long the last token is kept, in ms
--
-- Returns  {1, token, lease, ttl, outermost}  held; lease and ttl in ms, lease negative when fixed
--          {2, ttl, exact}  busy; exact is 1 when nothing will lengthen the ttl
--          {3}              the lock to enter is gone
--          {4}              this hold was given up before the script arrived
local lock, owner, hold = KEYS[1], ARGV[1], ARGV[2]
local lease = tonumber(ARGV[3])

local function next_token()
  local now = redis.call('TIME')
  local token = tonumber(now[1]) * 1000000 + tonumber(now[2])
  local last = tonumber(redis.call('GET', KEYS[2]) or '0')
  if token <= last then
    token = last + 1
  end
  token = string.format('%.0f', token)
  redis.call('SET', KEYS[2], token, 'PX', ARGV[6])
  return token
end

if redis.call('EXISTS', KEYS[3]) == 1 then
  return {4}
end

if redis.call('HEXISTS', lock, owner) == 1 then
  local held = redis.call('HMGET', lock, 'latchkey:token', 'latchkey:lease')
  local token = held[1]
  if ARGV[5] ~= '' and token ~= ARGV[5] then
    return {3}
  end
  if token then
    lease = tonumber(held[2])
  else
    -- Redisson took it for this owner: it becomes one of ours as well.
    token = next_token()
    redis.call('HSET', lock, 'latchkey:token', token, 'latchkey:lease', lease)
  end
  if redis.call('HSETNX', lock, hold, 0) == 1 then
    redis.call('HINCRBY', lock, owner, 1)
  end
  local ttl = redis.call('PTTL', lock)
  if ttl < lease then
    redis.call('PEXPIRE', lock, lease)
    ttl = lease
  end
  return {1, token, lease, ttl, tonumber(redis.call('HGET', lock, hold))}
end

if ARGV[5] ~= '' then
  return {3}
end

local ttl = redis.call('PTTL', lock)
if ttl ~= -2 then
  local marks = redis.call('HMGET', lock, 'latchkey:window', 'latchkey:lease')
  local exact = 0
  if marks[1] or (marks[2] and tonumber(marks[2]) < 0) then
    exact = 1
  end
  return {2, ttl, exact}
end

local token = next_token()
redis.call('HSET', lock, owner, 1, hold, 1, 'latchkey:token', token, 'latchkey:lease', lease)
if tonumber(ARGV[4]) > 0 then
  local now = redis.call('TIME')
  local keep = tonumber(now[1]) * 1000 + math.floor(tonumber(now[2]) / 1000) + tonumber(ARGV[4])
  redis.call('HSET', lock, 'latchkey:keep', string.format('%.0f', keep))
end
-- A user who may write hashes but not set expiries must not leave a lock that never ends.
local expiry = redis.pcall('PEXPIRE', lock, math.abs(lease))
if type(expiry) == 'table' and expiry.err then
  redis.call('DEL', lock)
  return expiry
end
return {1, token, lease, math.abs(lease), 1}
