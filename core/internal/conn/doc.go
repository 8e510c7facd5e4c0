// Package conn brings scripts to a Redis and says what is known of their outcome. It knows nothing of what
// the scripts are for.
//
// A [Server] is one Redis: a single server, the master that Sentinel names, a cluster or a ring. [Server.Do]
// runs a [Command], which is a [Script] with its keys and arguments, and waits for the reply; [Server.Queue]
// and [Server.Flush] send commands in the background, in pipelines. [OutcomeOf] tells what is known of one
// that failed.
//
// go-redis never sends a command again by itself here. A command that may run twice is given [Resends] and
// then sent again when its connection breaks. One whose outcome nobody has heard of is compensated: see
// [Command].
//
// A command that finds few others in flight to its server goes by itself. Others share round trips, and where
// one server has all keys several of a kind become one command, a batch: see Merged of [Script].
package conn
