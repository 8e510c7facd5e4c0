-- Starts the leases of several exclusive locks anew.
--
-- KEYS     the locks
-- ARGV     of each lock: owner; the whole mode as it is when no more is known of the lock, x<token>[ <lease>]; lease
--          in ms
--
-- Returns  of each '10' .. ARGV[1] .. ARGV[2], or nil: nothing was done, ask renew.lua
local call, replies, done = redis.call, {}, '10' .. ARGV[1] .. ARGV[2]
for i = 1, #KEYS do
  local lock, owner, simple_mode, lease = KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i]
  -- include simple
  local ours = simple or held[1] and string.match(held[2] or '', '^x%d+') == string.match(simple_mode, '^x%d+')
  replies[i] = ours and call('PEXPIRE', lock, simple and lease or math.max(call('PTTL', lock), lease)) == 1 and done or false
end
return replies
