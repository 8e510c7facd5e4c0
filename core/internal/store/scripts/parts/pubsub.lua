-- How the scripts publish, here to a single server. script.go puts in other values: SPUBLISH for sharded
-- pub/sub; COUNTS is false where no server knows all subscribers, as in a cluster.
local PUBLISH = 'PUBLISH'
local COUNTS = true
local CHANNEL = 'redisson_lock__channel:{' -- and the name of the lock, and a }
