// Package checker judges what several processes saw of locks: whether two of them
// held one at the same time, whether each key's history is that of a lock with growing
// tokens, whether requests and calls of core.Once count once, whether of tasks one runs,
// one waits and none is lost, and what a store that checks tokens has refused. The fault
// suite and the simulation fill in what it judges.
package checker
