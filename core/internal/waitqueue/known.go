package waitqueue

import "time"

// Known is what is known about a lock that is waited for.
type Known struct {
	Answered bool      // Redis has answered once
	Local    bool      // the last we know is that this process holds the lock
	Silence  time.Time // since when no question has been answered; zero: the last one was
	Failure  error     // of the last question in the Silence, as far as is known
	Taken
}

// Taken is how long others have a lock.
type Taken struct {
	Until time.Time // when it is free at the latest; zero: it has no end
	By    Taker
}

// Taker is what has a lock.
type Taker int8

const (
	Holder      Taker = iota // who may postpone Until
	FixedHolder              // who may not
	DedupWindow              // nobody any more: the work was done
	Foreigner                // who tells nobody of the end
)
