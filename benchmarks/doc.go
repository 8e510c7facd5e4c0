// Command benchmarks compares latchkey with other locks on Redis, and with the
// floor: the two scripts that a lock cannot do without, by go-redis alone.
//
//	go run .                                   # all rows, writes results/
//	go run . -quick                            # a look at all rows, prints only
//	go run . -rows hot-64 -libs latchkey,floor -rounds 5 -round-time 2s
//
// It starts a redis-server of its own for each row. In every round each library
// has its turn, in rotating order, so that a machine that slows down slows all
// of them down; what is reported are medians over the rounds, and ratios are
// medians of the ratios within a round. While it measures it checks that the
// locks exclude: a violation fails the run.
//
// What is counted, and which settings the others get, is in README.md. It runs
// where redis-server does: on Linux and macOS.
package main
