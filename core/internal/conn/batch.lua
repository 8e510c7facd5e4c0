-- The end of scripts that can do several calls in one command. They define
--   count    the number of calls
--   each(i)  does one, and returns its reply
--
-- Returns  of one call its reply, or its error; of more {…} of replies, or {-1, error};
--          what is no list is the reply of each
if count == 1 then
  return each(1)
end
local replies = {}
for i = 1, count do
  local done, reply = pcall(each, i)
  local failure
  if type(reply) == 'table' then
    failure = reply.err
  elseif not done then
    failure = tostring(reply) -- before Redis 7
  end
  if failure then
    if string.find(failure, 'READONLY', 1, true) then
      return {err = failure} -- nothing was done, and the client is to look for the master
    end
    -- go-redis takes an error in a list for the end of the reply.
    reply = {-1, failure}
  end
  replies[i] = reply
end
return replies
