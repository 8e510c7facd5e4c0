package store

import (
	"fmt"
	"strings"
	"time"
)

// BargingWindow is the time for which those outside the queue go first, once they get their chance.
const BargingWindow = 3 * time.Millisecond

// Message is what a release tells a process that waits for the lock.
type Message struct {
	Token int64         // of a lock that was granted for [GrantLease]; 0: none was
	Ahead bool          // the token is ahead of the clock of Redis
	At    time.Duration // on the clock of Redis

	hold string // SHA-1
}

// OpensBargingWindow reports whether the lock is free, for those outside the queue first.
func (m Message) OpensBargingWindow() bool { return m.Token == 0 }

// IsFor reports whether a hold was granted the lock.
func (m Message) IsFor(hold string) bool { return m.hold == digest(hold) }

// ReadMessage reads one. An error says that it is none of ours.
func ReadMessage(text string) (m Message, err error) {
	if text == "open" {
		return m, nil
	}
	words := strings.SplitN(text[:min(len(text), 128)], " ", 4) // none of ours is longer
	if len(words) != 3 {
		return m, fmt.Errorf("an unexpected message: %.64q", text)
	}
	m.hold = words[0]
	if m.Token, err = parseToken(words[1]); err != nil {
		return m, err
	}
	at, err := parseToken(words[2])
	m.At, m.Ahead = time.Duration(at)*time.Microsecond, m.Token > at
	return m, err
}
