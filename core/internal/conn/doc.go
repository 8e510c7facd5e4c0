// Package conn brings scripts to a Redis and says what is known of their outcome. It
// knows nothing of what the scripts are for.
//
// A [Server] is one Redis: a single server, the master that Sentinel names, a cluster or
// a ring. [Server.Do] runs a [Command], which is a [Script] with its keys and arguments,
// and waits for the reply; [Server.Queue] and [Server.Flush] send commands in the
// background, in pipelines.
//
//	var incr = conn.NewScript("return redis.call('INCR', KEYS[1])")
//
//	s := conn.New(client, conn.Config{Prefix: "app:", Timeout: 2 * time.Second, Workers: workers})
//	reply, err := s.Do(ctx, &conn.Command{Script: incr, Keys: 1, Words: []any{"app:n"}}, 2*time.Second)
//	if err != nil && conn.OutcomeOf(err) == conn.Unknown {
//		// It may have run, or may yet.
//	}
//
// go-redis never sends a command again by itself here. A command that may run twice,
// because it counts once and has the same reply each time, is given [Resends] and then
// sent again when its connection breaks. A command whose outcome nobody has heard of
// is compensated: see [Command].
//
// Commands that find several others in flight to the same server share round trips, and
// where one server has all keys several of a kind become one command, a batch: see Merged of
// [Script].
package conn
