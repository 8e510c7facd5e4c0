-- A lock is a hash. The field mode says what it is:
--
--   x<token>[ <lease>[ <hold>…]][+]  exclusive. Without a lease it is 30000, and without holds the owner is the only one. The +
--                                    keeps a release from its fast path (not that of a fencing clock, see next_token.lua): calls
--                                    wait or have waited, a release has granted the lock, a dedup window is to begin, or there
--                                    are other holds
--   s[<µs>], p[<µs>]                 shared; permits. No holder ends before that time, at most 1 s ahead: before it, scripts need
--                                    not look through the holders. The number of permits is stored nowhere: each call says its
--                                    own
--   h<token> <digest> <ms>           handed over. Without a holder it is parked, for so long. The digest is that of the ticket
--   i<attempts> <digest> <ms>        of an idempotent request, which has that digest. Without a holder the outcome of the last
--                                    attempt is unknown, for so long
--   w<ms>[ <digest>]                 nobody's: a dedup window that lasts, or the stored answer to the request of that digest
--
-- The other fields:
--
--   <owner>                  of x: how many holds the owner has, as Redisson counts them
--   latchkey:holder:<owner>  of s, p, h, i: <end in µs> <lease> <token> <hold>[ <hold>]…
--   latchkey:weight:<i>:<owner>  of p: one for each further permit that the owner has, i is 1, 2, …
--   latchkey:keep            <end in µs> <length in ms>: the dedup window that is to begin. It counts from the acquisition, so
--                            work that takes longer leaves none
--   latchkey:answer          of w: <digest> <answer>
--   latchkey:by              of h: the owner who has handed the lock over
--   latchkey:back:<id>       this request to hand the lock over was taken back, and is refused
--
-- A hold is one acquisition: <process>:<64 random bits>. The first of a list is the outermost one. When it ends before the
-- others, - (done) or ! (failed) takes its place. A lease is in ms. It is negative when nobody renews it, and 0 when a release
-- has granted the lock and the new holder has not confirmed that yet. Redisson reads every numeric field value as a re-entry
-- count, so only the count may be a plain number.
--
-- The hash expires with its lock: after the lease or the longest of several; h and i that much later.
--
-- read.lua reads it.
-- Uses now.
local TOKEN_GAP = 1e4 -- of tokens, for those that a process has given in memory, and not told Redis
local HOLDER = 'latchkey:holder:'
local GRANT_MS = 1000 -- the lease of a grant that was not confirmed yet
local SEVERAL = '[sp]' -- the kinds of which there may be several holders; room.lua knows how many
local STAYING = '[whi]' -- the kinds that may last without a holder

-- The lock, as it was read. kind is the letter of the mode; nil when the lock is free, r when Redisson has it, f when it is a string,
-- u in a form of a later version, ? when it is none of ours. number, digest and stays are the parts of the mode.
local mode, kind, number, digest, keep
local stays = 0 -- for how long h and i last without a holder, in ms
local mine, held -- what the owner has of the lock; what the holder of an exclusive one has, whoever it is

local function length_of(lease)
  return lease == '0' and GRANT_MS or math.abs(lease)
end

-- Says what is left of the dedup window that is to begin, in ms.
local function left_of(keep)
  local ends, whole = string.match(keep, '(%d+) (%d+)')
  return math.min(math.ceil((ends - now) / 1000), tonumber(whole)) -- the clock may have been set back
end

-- Returns nil when there is no such holder, or it has ended. The clock may have been set back: left is no
-- more than the lease, and cut says that it was shortened to that.
local function parse_holder(text)
  local ends, lease, token, holds = string.match(text or '', '^(%d+) (%-?%d+) (%d+) (.+)$')
  local rest = ends and math.ceil((ends - now) / 1000) or 0
  local left = ends and math.min(rest, length_of(lease)) or 0
  return left > 0 and {token = token, lease = lease, holds = holds, left = left, cut = left < rest} or nil
end

-- Finds a hold in a list: where it begins and ends there, with a space before and after it. Returns nil if the list has it not.
local function has(holds, hold)
  return string.find(' ' .. holds .. ' ', ' ' .. hold .. ' ', 1, true)
end
