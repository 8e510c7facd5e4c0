-- Takes a lock for an attempt at a request that counts once, or says what became of the
-- attempts before. Sent twice with the same hold, it counts once.
--
-- KEYS[1]  the lock; see hash.lua, holders.lua
-- KEYS[2]  the queue, a sorted set; see queue.lua
-- KEYS[3]  the fencing clock of its hash slot
-- ARGV[1]  owner
-- ARGV[2]  hold
-- ARGV[3]  lease in ms, negative when nobody renews it
-- ARGV[4]  digest of the request
-- ARGV[5]  for how long the request is known after the lease, in ms
-- ARGV[6]  '1' to have no attempt after one of which nobody knows whether it has done its work
--
-- Returns what acquire.lua does: {1, …} with two more values: 1 where the token is ahead of the
-- clock of Redis, else 0, and the number of the attempt; {2, …}; {4}; or
--          {7, answer}  of an earlier attempt
--          {8}          the lock is of another request
--          {9}          it is not known whether the last attempt has done its work
local call = redis.call
local lock, queue, clock = unpack(KEYS)
local owner, hold, lease, request, known, refuse = unpack(ARGV)
local time = call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

-- include next_token
-- include hash
-- include holders
-- include queue
-- include touch

if (tonumber(call('ZSCORE', queue, member_of(owner, hold, ''))) or 0) >= TOMBSTONE then
  return {4}
end
local mode = call('HGET', lock, 'mode') or ''
local answered = string.match(mode, '^w%d+ (%x+)$')
if answered then
  -- Another request is not worth loading the answer.
  return answered == request and {7, string.sub(call('HGET', lock, 'latchkey:answer'), #request + 2)} or {8}
end
local attempts, before = string.match(mode, '^i(%d+) (%x+) %d+$')
if not attempts and call('EXISTS', lock) == 1 then
  return {2, call('PTTL', lock), 0, tonumber(now), 0}
elseif attempts and before ~= request then
  return {8}
end
local owned = attempts and read_holder(lock, owner, now)
if not owned or not holds(owned, hold) then
  local holders, count = living(lock, now)
  if count > 0 then
    local _, holder = next(holders)
    return {2, holder.left, tonumber(holder.lease) < 0 and 1 or 0, tonumber(now), 0}
  elseif attempts and refuse == '1' then
    return {9}
  end
  attempts = string.format('%.0f', (attempts or 0) + 1)
  mode = 'i' .. attempts .. ' ' .. request .. ' ' .. known
  owned = {left = math.abs(lease), lease = lease, token = next_token(clock, now), holds = hold}
  call('HSET', lock, 'mode', mode)
  write_holder(lock, owner, owned, now)
  local expiry = outlast(lock, mode, owned.left)
  if expiry ~= 1 then -- a user who may write hashes but not set expiries must not leave one that never ends
    call('DEL', lock)
    return expiry
  end
else
  touch(lock)
end
return {1, owned.token, tonumber(owned.lease), owned.left, 1, owned.token > now and 1 or 0, tonumber(attempts)}
