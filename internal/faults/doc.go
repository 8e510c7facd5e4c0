// Package faults holds the fault suite, in its tests: worker processes lock,
// re-enter and unlock, have requests counted once, call core.Once, and run asynq's
// tasks under KeepOne, while a nemesis hurts Redis, the network and the workers
// themselves, and everything that the workers saw is checked afterwards.
//
//	go test ./internal/faults                                       # each fault once
//	go test ./internal/faults -run TestFaults -v -faults.for 10m    # at random, with a table at the end
//	go test ./internal/faults -run TestFaults -faults.only swapped  # the faults of some name
//	make test-mixed OLD=HEAD~5                                       # every second worker is of that commit, as in a rolling upgrade
//
// A run is a topology of Redis, a crew of workers and a sequence of rounds. In a
// round the crew works, one fault is injected and healed, every key must be locked
// again soon, and the crew rests. What a worker saw of one attempt at a lock is a
// visit; the visits of a round are checked for mutual exclusion, for
// linearizability, and for losses that were told too late. A store in the test
// process, which no fault reaches, checks the fencing tokens.
package faults
