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
  replies[i] = false
  if held[1] and string.match(held[2] or '', '^x(%d+)') == token then
    local alone = held[1] == '1' and string.sub(held[2], -1) ~= '+'
    replies[i] = redis.call('PEXPIRE', lock, alone and lease or math.max(redis.call('PTTL', lock), lease)) == 1 and done
  end
end
return replies
