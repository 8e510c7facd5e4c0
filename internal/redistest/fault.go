package redistest

import (
	"slices"
	"strings"
	"testing"
)

// Match chooses requests by their arguments, the command's name first, as the
// client wrote it. It must not call the proxy.
type Match = func(request []string) bool

// Command matches any of the named commands, in either case.
func Command(names ...string) Match {
	return func(request []string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, request[0]) })
	}
}

// Script matches EVALSHA of the script with this SHA-1, and EVAL of its text.
// It matches an EVALSHA that Redis answers with NOSCRIPT, too: a fault on the
// reply passes over that one, a fault on the request does not, so run the
// script once before.
func Script(digests ...string) Match {
	return func(request []string) bool {
		if len(request) < 2 {
			return false
		}
		switch strings.ToLower(request[0]) {
		case "evalsha", "evalsha_ro":
			return slices.Contains(digests, strings.ToLower(request[1]))
		case "eval", "eval_ro":
			return slices.Contains(digests, Digest(request[1]))
		}
		return false
	}
}

// FaultOption changes how often a fault happens.
type FaultOption func(*Fault)

// Times lets a fault happen to the next n requests that match, instead of one.
func Times(n int) FaultOption { return func(f *Fault) { f.left = n } }

// Always lets a fault happen to every request that matches, until Disarm.
func Always() FaultOption { return Times(-1) }

// action is what happens to a request that matched.
type action int

const (
	observe action = iota
	dropReply
	hangReply
	replaceReply
	swapReplies
	dropRequest
	answer
	hold
)

// Fault is one thing that a proxy does to requests which match. Unless an
// option says otherwise it happens once.
type Fault struct {
	proxy  *Proxy
	match  Match
	action action
	reply  []byte

	happened chan struct{} // closed when it first happens
	released chan struct{} // closed by Release

	// Guarded by proxy.mu.
	left  int // how many more times; negative: no limit
	off   bool
	count int
	last  []string
	held  []*exchange
	kept  *packet // a reply that another one is to be exchanged for
	pass  chan struct{}
}

// Happened is closed when the fault has happened for the first time: the reply
// was swallowed or replaced (so Redis has executed the request), the request
// was swallowed, answered or held.
func (f *Fault) Happened() <-chan struct{} { return f.happened }

// Wait returns when Happened is closed, and ends the test if that takes too long.
func (f *Fault) Wait(tb testing.TB) {
	tb.Helper()
	Await(tb, patience, "the proxy to meet a request that matches", func() bool { return f.Count() > 0 })
}

// Count is how many times it has happened.
func (f *Fault) Count() int {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	return f.count
}

// Request is the request to which it happened last, or nil.
func (f *Fault) Request() []string {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	return f.last
}

// Disarm keeps it from happening again. Requests that it holds stay held, a reply that
// it keeps goes on.
func (f *Fault) Disarm() {
	f.proxy.mu.Lock()
	defer f.proxy.mu.Unlock()
	f.off = true
	f.letPass()
}

// Release delivers the requests that a HoldRequest fault holds, and returns
// when Redis has answered each of them or can no longer. Nothing is held after it.
func (f *Fault) Release() {
	f.proxy.mu.Lock()
	f.off = true
	held := f.held
	f.held = nil
	select {
	case <-f.released:
	default:
		close(f.released)
	}
	f.proxy.mu.Unlock()
	for _, e := range held {
		<-e.done
	}
}

// note records that the fault has happened. The caller holds proxy.mu.
func (f *Fault) note(request []string) {
	if f.count == 0 {
		close(f.happened)
	}
	f.count++
	f.last = request
}

// giveBack takes back that the fault was used up by a request which Redis did
// not execute. The caller holds proxy.mu.
func (f *Fault) giveBack() {
	if f.left >= 0 && f.action != hold {
		f.left++
	}
}
