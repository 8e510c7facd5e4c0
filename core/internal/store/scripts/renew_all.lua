-- Starts the leases of several exclusive locks anew.
--
-- KEYS     the locks
-- ARGV     of each lock: owner, token, lease in ms
--
-- Returns  of each {10}, or nil: nothing was done, ask renew.lua
local replies, done = {}, {10}
for i = 1, #KEYS do
  local lock, owner, token, lease = KEYS[i], unpack(ARGV, 3 * i - 2, 3 * i)
  local held = redis.pcall('HMGET', lock, owner, 'mode')
  local ours = held[1] and string.match(held[2] or '', '^x(%d+)') == token
  local least = ours and (held[1] ~= '1' or string.sub(held[2], -1) == '+') and redis.call('PTTL', lock) or 0
  replies[i] = ours and redis.call('PEXPIRE', lock, math.max(least, lease)) == 1 and done or false
end
return replies
