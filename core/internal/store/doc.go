// Package store is what Redis knows about locks: requests and their outcomes, each with
// its type, and the scripts that do them. It keeps no state of a lock in this process.
//
// A [Store] is one Redis, or a quorum of several independent ones where a majority
// decides ([NewQuorum]); its methods are the same for both. [Store.Acquire] takes a lock
// or enters one, for a [Claim]; [Store.Renew] prolongs it, [Store.Release] ends one hold:
//
//	name := store.NewName("lock:", "order:42")
//	hold := s.NewHold()
//	claim := &store.Claim{Name: name, Owner: hold, Hold: hold, Lease: 30 * time.Second}
//	grant, err := s.Acquire(ctx, claim)
//	s.Decided(claim, held) // nil when err is not
//	…
//	released, err := s.Release(ctx, store.Release{Name: name, Owner: claim.Owner, Hold: hold}, timeout)
//
// A request that Redis has answered fails with what it said: [*Busy], [ErrGone], or a
// bool that is false. All other errors are [*conn.Failure]. What an acquisition whose
// outcome is unknown may have left in Redis is compensated: its release is given to
// [Config].Compensate as a [Compensation], to be sent until Redis confirms it. Of a
// quorum each member is compensated for itself.
//
// A reply that a script would not give is an error whose outcome is unknown: the server
// only resembles Redis.
//
// The commands are the scripts in the folder scripts, each with a header that tells keys, arguments and
// replies. What several of them share, or what not every call needs, is a part in scripts/parts, put
// in at the line "-- include". The parts lock.lua and queue.lua tell what is in Redis. What several
// calls can do in one command is done by take_all.lua, free_all.lua and renew_all.lua, and left to the
// others where it is not the usual case.
package store
