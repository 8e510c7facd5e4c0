// Package conformance holds the tests that every HTTP adapter has to pass: the
// same requests get the same answers from gin, echo and net/http. It has tests
// only, and is a module of its own because echo v5 asks for more than users of the others should need.
package conformance
