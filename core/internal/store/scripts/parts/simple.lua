-- The fast path: simple says that the owner has an exclusive lock by one hold, and simple_mode is still the whole mode.
-- Uses lock, owner, simple_mode.
local held = redis.pcall('HMGET', lock, owner, 'mode')
local simple = held[1] == '1' and held[2] == simple_mode
