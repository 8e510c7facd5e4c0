package store

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"unicode/utf8"
)

const (
	// MaxKeyBytes is how long a key may be, before it is encoded. [NewName] does not check it.
	MaxKeyBytes = 1024
	// Fields of a lock's hash that are no owner's: one of that name, and all that begin so.
	modeField = "mode"
	ownFields = "latchkey:"
)

// IsOwnField reports whether a field of a lock's hash is one of ours, and no owner's.
func IsOwnField(field string) bool { return field == modeField || strings.HasPrefix(field, ownFields) }

// Name names one lock in Redis: its keys, which all hash to one slot, and its channel.
type Name struct {
	keys                string // that of the queue, in which that of the lock is, and that of the clock
	prefix, queueLength int32  // their lengths
}

// NewName names the lock of a key under a prefix. No two keys have one name, and none chooses its hash slot.
func NewName(prefix, key string) Name {
	key = encode(key)
	tag := tags()[slotOf(prefix, key)]
	keys := prefix + "{" + prefix + key + "}:queue" + prefix + "latchkey:clock:{" + string(tag[:]) + "}"
	return Name{keys, int32(len(prefix)), int32(2*len(prefix) + len(key) + len("{}:queue"))}
}

// Lock is the key of the lock's hash, as Redisson names it.
func (n Name) Lock() string { return n.keys[n.prefix+1 : n.queueLength-int32(len("}:queue"))] }

// Key is the key as the caller wrote it.
func (n Name) Key() string {
	key, _ := url.PathUnescape(n.Lock()[n.prefix:]) // encode has left no stray percent
	return key
}

// Channel carries wake-ups for all who wait; Channel() + ":" + [ProcessChannel] those for one process.
func (n Name) Channel() string { return "redisson_lock__channel:{" + n.Lock() + "}" }

// queue is the key of the queue.
func (n Name) queue() string { return n.keys[:n.queueLength] }

// clock is the fencing clock, which the locks of a hash slot share: it holds the last token given in that slot, for
// ever. Scripts name it after the lock, which decides what server they run on where keys are not spread by slots, as in
// a Ring: each server then has a clock of its own for the locks that it has.
func (n Name) clock() string { return n.keys[n.queueLength:] }

// words are what commands about the lock, its queue and an owner begin with.
func (n Name) words(room []any, owner string) []any {
	return append(room[:0], n.Lock(), n.queue(), n.clock(), owner)
}

// ProcessChannel names the channels of a process. Whoever may list channels learns no hold from it.
func ProcessChannel(process string) string { return digest(process) }

// digest is redis.sha1hex.
func digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// encode percent-encodes what would let a key choose its hash slot, break the hash tag or garble a terminal. No two
// keys have one encoding.
func encode(key string) string {
	if !strings.ContainsFunc(key, isEncoded) {
		return key
	}
	var b strings.Builder
	b.Grow(len(key) + 8)
	for i, r := range key {
		if isEncoded(r) && !strings.HasPrefix(key[i:], string(utf8.RuneError)) {
			fmt.Fprintf(&b, "%%%02X", key[i])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// isEncoded is true of what stands for a byte that is no rune, too.
func isEncoded(r rune) bool {
	return r < 0x20 || r == 0x7f || r == '%' || r == '{' || r == '}' || r == utf8.RuneError
}

const slots = 16384

// tags has a hash tag for each slot: of locks that share a slot, the fencing clock is in the same slot of a cluster as
// they are. Three letters or digits are enough for all.
var tags = sync.OnceValue(func() *[slots][3]byte {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	all := new([slots][3]byte)
	left := slots
	for i := 0; left > 0; i++ {
		tag := [3]byte{letters[i/len(letters)/len(letters)], letters[i/len(letters)%len(letters)], letters[i%len(letters)]}
		if slot := slotOf(string(tag[:])); all[slot][0] == 0 {
			all[slot] = tag
			left--
		}
	}
	return all
})

// slotOf is the slot of a key without braces, of which there may be several parts.
func slotOf(parts ...string) int {
	crc := uint16(0)
	for _, part := range parts {
		for i := range len(part) {
			crc = crc<<8 ^ crcTable[byte(crc>>8)^part[i]]
		}
	}
	return int(crc) % slots
}

// crcTable is that of CRC-16/XMODEM.
var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			crc = crc<<1 ^ crc>>15*0x1021
		}
		table[i] = crc
	}
	return table
}()

// InFirstSlot returns a key that begins with start, and whose lock is in the first hash slot. Keys that are used once
// are named so: each slot has a fencing clock, which stays.
func InFirstSlot(prefix, start string) string {
	// The checksum is linear: that of a whole is that of its parts, each with zeros for the rest, by exclusive or.
	tag := tags()[slotOf(NewName(prefix, start).Lock(), "\x00\x00\x00")]
	return start + string(tag[:])
}
