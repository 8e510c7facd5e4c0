-- Takes the oldest notes from beside a lock.
--
-- KEYS[1]  the notes, a list
-- ARGV[1]  how many at most
--
-- Returns  {more, note, …}  more is 1 where others are left, 0 where not
local most = tonumber(ARGV[1])
local notes = redis.call('LRANGE', KEYS[1], 0, most)
if #notes > 0 then
  redis.call('LTRIM', KEYS[1], most, -1)
end
local more = table.remove(notes, most + 1)
table.insert(notes, 1, more and 1 or 0)
return notes
