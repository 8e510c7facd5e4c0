// Package conformance holds the tests that every HTTP adapter has to pass: the
// same requests get the same answers from gin, echo and net/http. It has tests
// only.
package conformance
