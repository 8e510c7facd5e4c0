-- A string under the name of a lock is somebody else's lock, as SET NX makes it.
-- Uses call, lock.

-- Says whether an error is that of a string.
local function is_string(failed)
  return type(failed) == 'table' and string.find(failed.err or '', '^WRONGTYPE') and call('TYPE', lock).ok == 'string'
end

-- Returns the error of a server that would not write. That a lock is not found counts only from one that would have: one that was demoted
-- refuses this.
local function unwritable()
  local tried = redis.pcall('HDEL', lock, '')
  return type(tried) == 'table' and not is_string(tried) and tried or nil
end
