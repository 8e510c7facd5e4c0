// Package overload asks latchkey, redislock and redsync for more than a Redis can do, and tells how they come back.
//
// The model is an embedded Redis behind one queue, first in, first out, in the fake time of testing/synctest: no figure
// depends on how busy the machine is. What a client has sent is done, also if it has given up and closed its connection
// by then, as Redis does with what is in its socket. An answer takes 0.1 ms beside that.
//
// Work is counted in units. A unit is what one script costs, 2 ms here: a server does 500 units, or 250 calls (acquire and
// release), a second. Other commands cost in proportion what a real Redis 7.0 spent: see cost_test.go.
//
// Six processes with 20 connections each ask for locks on 2,000 keys at random, hold each for 2 ms, and arrive at random
// times, however many wait already. They ask for 60 % of what the server can do for 10 s, then for five times that for 5 s
// (or the server does nothing for 5 s), then for 60 % again. Rows of rows_test.go differ in that.
//
// It is a test, for there are no bubbles without one: "make overload" runs it whole, "make test-benchmarks" a little of it.
// Each row has a process of its own, see inItsOwnProcess. The embedded Redis is told the time at each command, but ages its
// keys each 20 ms only: it looks through all of them.
package overload
