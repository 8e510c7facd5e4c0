// Package store is what Redis knows about locks: requests and their outcomes, each with its type, and the scripts that
// do them. It keeps no state of a lock in this process.
//
// A [Store] is one Redis; a [Quorum] is several independent ones, where a majority decides. [Store.Acquire] takes a lock or
// enters one, for a [Claim]; [Store.Renew] prolongs it, [Store.Release] ends one hold.
//
// A request that Redis has answered fails with what it said: [*Busy], [ErrGone], or a bool that is false. All other
// errors are [*conn.Failure]. What an acquisition whose outcome is unknown may have left in Redis is compensated: its
// release is given to [Config].Compensate as a [Compensation], to be sent until Redis confirms it. Of a quorum each
// member is compensated for itself. A reply that no script gives leaves the outcome unknown: the server only resembles
// Redis.
//
// The commands are in the folder scripts, each with a header that tells keys, arguments and replies. What several
// share, or not every call needs, is in scripts/parts, put in at the line "-- include". lock.lua and queue.lua tell
// what is in Redis.
package store
