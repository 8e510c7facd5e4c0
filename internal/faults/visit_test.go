package faults

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/checker"
)

// What workers report, and what the locks protect. A visit is reported anew whenever
// it has grown, so that the test knows it too when the worker is killed.
type (
	visit  = checker.Visit
	form   = checker.Form
	store  = checker.Store
	access = checker.Access
)

const (
	confirmed = checker.Confirmed
	// lateLimit is how much later than its lease a running holder may learn of a loss:
	// goroutines wait for their turn, too.
	lateLimit = 100 * time.Millisecond
	// decideWithin bounds the search for a linearization of one round of one key.
	decideWithin = 30 * time.Second
)

func newStore() *store { return checker.NewStore() }
