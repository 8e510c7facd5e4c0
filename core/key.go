package core

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const maxKeyBytes = 1024

// names are the Redis keys and the channel of one lock. All hash to one slot.
type names struct {
	lock   string // the hash, as Redisson names it
	prefix string
}

// token holds the last fencing token.
func (n names) token() string { return n.prefix + "{" + n.lock + "}:token" }

// line holds the processes that wait.
func (n names) line() string { return n.prefix + "{" + n.lock + "}:line" }

// channelPrefix is Redisson's.
const channelPrefix = "redisson_lock__channel:"

// channel carries wake-ups.
func (n names) channel() string { return channelPrefix + "{" + n.lock + "}" }

// tombstone is the key that refuses a late acquisition of a hold.
func (n names) tombstone(hold string) string {
	return n.prefix + "{" + n.lock + "}:void:" + hold[len(holdField):]
}

func (l *Locker) names(key string) (names, error) {
	if key == "" {
		return names{}, fmt.Errorf("%w: empty", ErrInvalidKey)
	}
	if len(key) > maxKeyBytes {
		return names{}, fmt.Errorf("%w: %d bytes, at most %d are allowed (keyfunc.Hash shortens it)", ErrInvalidKey, len(key), maxKeyBytes)
	}
	return names{l.prefix + encode(key), l.prefix}, nil
}

// encode percent-encodes what would let a key choose its hash slot, break the
// hash tag or garble a terminal. No two keys have one encoding.
func encode(key string) string {
	plain := true
	for i := 0; i < len(key); i++ {
		if c := key[i]; c < 0x20 || c >= 0x7f || c == '%' || c == '{' || c == '}' {
			plain = false
			break
		}
	}
	if plain {
		return key
	}
	var b strings.Builder
	b.Grow(len(key) + 8)
	for i := 0; i < len(key); {
		r, size := utf8.DecodeRuneInString(key[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < 0x20, r == 0x7f, r == '%', r == '{', r == '}':
			fmt.Fprintf(&b, "%%%02X", key[i])
			i++
		default:
			b.WriteString(key[i : i+size])
			i += size
		}
	}
	return b.String()
}
