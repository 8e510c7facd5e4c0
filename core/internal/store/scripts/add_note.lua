-- Leaves a note beside a lock.
--
-- KEYS[1]  the notes, a list
-- ARGV[1]  text
-- ARGV[2]  for how long the notes are kept from now on, in ms
--
-- Returns 1
redis.call('RPUSH', KEYS[1], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
