-- Takes a lock that was handed over. Sent twice with the same hold, it counts once.
--
-- KEYS[1]  the lock; see holders.lua
-- KEYS[2]  the queue, a sorted set; see queue.lua
-- KEYS[3]  the fencing clock of its hash slot
-- ARGV[1]  owner
-- ARGV[2]  hold
-- ARGV[3]  lease in ms, negative when nobody renews it
-- ARGV[4]  digest of the ticket
--
-- Returns as acquire.lua does; {2, …} when somebody has resumed it already, {3} when the
-- ticket is of no use, {4} when this hold was given up before the script arrived
local call = redis.call
local lock, queue, clock = unpack(KEYS)
local owner, hold, lease, digest = unpack(ARGV)
local time = call('TIME')
local now = time[1] .. string.sub('00000' .. time[2], -6)

-- include next_token
-- include hash
-- include holders
-- include queue

if (tonumber(call('ZSCORE', queue, member_of(owner, hold, ''))) or 0) >= TOMBSTONE then
  return {4}
end
local fields = call('HGETALL', lock)
local mode, others, holder
for i = 1, #fields, 2 do
  local field, value = fields[i], fields[i + 1]
  if field == 'mode' then
    mode = value
  elseif field == HOLDER .. owner then
    holder = parse_holder(value, now)
  elseif string.sub(field, 1, #HOLDER) == HOLDER then
    if parse_holder(value, now) then
      others = true
    else
      call('HDEL', lock, field)
    end
  end
end
if string.match(mode or '', '^h%d+ (%x+) %d+$') ~= digest then
  return {3}
elseif others then
  return {2, call('PTTL', lock), 0, tonumber(now), 0}
end
if not holder then
  holder = {left = math.abs(lease), lease = lease, token = next_token(clock, now), holds = hold}
  write_holder(lock, owner, holder, now)
  outlast(lock, mode, holder.left)
end
return {1, holder.token, tonumber(lease), holder.left, 1, holder.token > now and 1 or nil}
