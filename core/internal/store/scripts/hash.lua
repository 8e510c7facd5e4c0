-- A lock is a hash. A hold is one acquisition: <process>:<64 random bits>. Of an exclusive lock:
--
--   field                 value
--   <owner>               how many holds the owner has. The owner is the outermost hold,
--                         unless the caller has chosen one
--   mode                  x<token>[ <lease>][+]
--     lease               in ms, unless it is 30000. Negative: nobody renews it. 0: a release
--                         has taken the lock for somebody who has not confirmed that yet
--     +                   its release has more to do than to free the lock: calls wait, a
--                         dedup window is to open, or there are other holds
--   latchkey:hold:<hold>  again: a re-entry. first: the outermost hold of a chosen owner.
--                         The outermost hold has none otherwise
--   latchkey:left         the outermost hold has ended before the others, or is Redisson's. Of a
--                         lock that was resumed, or is of a request: yes or failed, what came of its work
--   latchkey:back:<id>    a request to hand the lock over was taken back, and is refused
--   latchkey:keep         <end in µs> <length in ms>: the dedup window that is to open
--
-- A dedup window that is open is the field mode: w<ms>. It is alone. With the answer to a request
-- that counts once it is w<ms> <digest of the request>, and latchkey:answer is <digest> <answer>.
-- For the other forms see holders.lua. No value but the count is a number: Redisson's scripts take numbers for counts.
local GRANT_MS = 1000 -- for so long a lock is taken by a release, unless its new holder renews it

local function mode_of(token, lease, further)
  return 'x' .. token .. (lease == '30000' and '' or ' ' .. lease) .. (further and '+' or '')
end

-- Returns token and lease as text, and whether a release has more to do; nil when the lock
-- is not held, or not by us, or not exclusively.
local function read_mode(mode)
  local token, lease, further = string.match(mode or '', '^x(%d+) ?(%-?%d*)(%+?)$')
  return token, token and lease == '' and '30000' or lease, further == '+'
end

-- The value of latchkey:keep.
local function keep(window, now)
  return string.format('%.0f', now + window * 1000) .. ' ' .. window
end
