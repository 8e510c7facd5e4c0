-- Last step of an acquisition whose owner has the lock already: adds the hold to what it has, unless the hold is there.
-- Uses acquire.lua, lock.lua, rest.lua, time.lua, write.lua. Sets begins, failure, kind, outermost.
outermost, begins = hold == string.match(mine.holds, '%S+'), false
if score then
  call('ZREM', queue, member, '!' .. member)
end
if not mine.token then
  -- Redisson took the lock for this owner. Now it becomes one of ours as well.
  -- include next_token
  kind, mine.lease = 'x', lease
  mine.token = next_token()
elseif mine.lease == '0' then
  -- A release has granted the lock. If this is the hold that got it, it gets its own lease, and its dedup
  -- window begins. A re-entry may come before that, with a lease below a second: the holder counts on its second.
  mine.lease = outermost and lease or tostring(math.max(math.abs(lease), GRANT_MS))
  mine.left = math.abs(mine.lease)
  begins = outermost
end
local length = tonumber(mine.lease)
mine.left = math.max(mine.left or rest(math.abs(length), mine.holds), length)
if not has(mine.holds, hold) then
  mine.holds, mine.count = mine.holds .. ' ' .. hold, (mine.count or 0) + 1
end
failure = prolong(mine.left)
if not failure then
  write(owner, mine)
end
