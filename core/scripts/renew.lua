-- Starts the leases of held locks anew; never shortens one.
--
-- KEYS     the locks, hashes
-- ARGV     of each lock: owner, token of the acquisition to renew, lease in ms
--
-- Returns  {…}  of each lock: 1 renewed, 0 the lock is not ours any more, or an error
local call, pcall = redis.call, redis.pcall
local replies = {}
for i, lock in ipairs(KEYS) do
  local owner, token, lease = ARGV[3 * i - 2], ARGV[3 * i - 1], tonumber(ARGV[3 * i])
  local held = pcall('HMGET', lock, owner, 'latchkey:token')
  if held.err then
    replies[i] = held
  elseif not held[1] or held[2] ~= token then
    replies[i] = 0
  else
    local renewed = 1
    if call('PTTL', lock) < lease then
      renewed = pcall('PEXPIRE', lock, lease)
    end
    replies[i] = renewed
  end
end
return replies
