-- The fast path: usual says that the owner has an exclusive lock by one hold, and plain is still the whole mode.
-- Uses lock, owner, plain.
local held = redis.pcall('HMGET', lock, owner, 'mode')
local usual = held[1] == '1' and held[2] == plain
