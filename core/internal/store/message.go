package store

import (
	"fmt"
	"strings"
	"time"
)

// GrantLease is how long a lock lasts that a release has granted, unless it is renewed: it is lost for so long on a
// process that hangs. A shorter one would be lost by those that stand still for a moment, or whose Redis does.
const GrantLease = time.Second

// Clock is what the clock of Redis showed after a request was sent.
type Clock struct {
	Redis time.Duration
	Sent  time.Time
}

// NotBefore is a time at which the clock of Redis showed no more than that: the most cautious one that is known.
func (c Clock) NotBefore(redis time.Duration) time.Time { return c.Sent.Add(redis - c.Redis) }

// Open is the time for which those outside the queue go first, once they get their chance.
const Open = 3 * time.Millisecond

// Message is what a release tells a process that waits for the lock.
type Message struct {
	Token int64         // of a lock that was granted for [GrantLease]; 0: it is open, free for those outside the queue first
	Ahead bool          // the token is ahead of the clock of Redis
	At    time.Duration // on the clock of Redis

	hold string // SHA-1
}

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
