// Package simulation holds, in its tests, a world in fake time: several Lockers, each a
// process with connections of its own, one embedded Redis, and a nemesis that loses,
// delays, doubles and cuts what travels between them, pauses and kills processes,
// restarts Redis and moves its clock. Everything that the processes saw is checked
// afterwards, with the checks of the fault suite and some that only an exact clock
// allows. Requests and calls of core.Once, and asynq's tasks under KeepOne, have worlds
// of their own, in which Redis loses nothing.
//
//	go test ./internal/simulation                                             # some seeds
//	go test ./internal/simulation -run TestSimulation -simulation.seed=N      # one seed, several times
//	go test ./internal/simulation -run TestSimulation -v -simulation.for=10m  # new seeds, with a table at the end
//	go test ./internal/simulation -run TestARunBegins -v -simulation.for=40m  # the same for KeepOne, a quarter of that long
//
// A seed decides what the world consists of, what its processes attempt and which
// faults happen when. It does not decide which of two goroutines that are ready at one
// instant runs first: the same seed gives the same faults, but perhaps another
// interleaving, which is why a seed that is given runs several times.
package simulation
