// Package checker judges what several processes saw of locks: whether two of them
// held one at the same time, whether each key's history is that of a lock with growing
// tokens, whether requests that count once do, and what a store that checks tokens has
// refused. The fault suite and the simulation fill in the visits.
package checker
