package conn

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"slices"
)

//go:embed batch.lua
var batchEnd string

// Script is a Lua script as Redis caches it: by the SHA-1 of its text. Its fields are
// set before it is used first.
type Script struct {
	// Replicate says that replicas are to have what it writes, where the Server waits
	// for any. When Did is true of its reply it has written, if without a change: WAIT may
	// know nothing of what another connection wrote.
	Replicate bool
	// Did tells from a reply whether the script did what compensation would undo, and
	// what replicas must have. nil: it never does.
	Did func(reply any) bool

	text   string
	sha    any // a string
	merges bool
}

// NewScript returns a script that does one call at a time.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{text: text, sha: hex.EncodeToString(sum[:])}
}

// NewBatchScript returns a script one command of which can do several calls. It takes
// the first keys of all calls, then their second ones and so on, then the arguments of each.
// The text defines count and each(i), to which batch.lua is added; calls of one batch have as
// many keys and words.
func NewBatchScript(text string) *Script {
	s := NewScript(text + batchEnd)
	s.merges = true
	return s
}

func (s *Script) did(reply any) bool { return s.Did != nil && s.Did(reply) }

// Command is one call of a script. It is not changed while it is in use, which for one
// that was given up can be after Do has returned.
type Command struct {
	Script *Script
	// Keys is the number of keys, which Words begins with; the arguments follow. The
	// first key, a string, decides which server of a cluster is asked.
	Keys  int
	Words []any
	// Resends permits Do to send the command again: it counts once, and has the same
	// reply each time. nil: it is sent once.
	Resends *Resends
	// Compensator is called once, perhaps later, when the script may have run or may yet
	// run and Do has not reported that it did: on any goroutine, and must not block.
	// nil: that does no harm. Of queued commands it is not called.
	Compensator interface{ Compensate(*Server) }
}

// evalsha stands in every command.
var evalsha any = "evalsha"

// line is EVALSHA, or EVAL where Redis does not know the script yet; in room, if that is
// enough.
func (c *Command) line(room []any, whole bool) []any {
	if n := 3 + len(c.Words); n > cap(room) {
		room = make([]any, n)
	}
	words := append(room[:0], evalsha, c.Script.sha, c.Keys)
	if whole {
		words[0], words[1] = "eval", c.Script.text
	}
	return slices.Clip(append(words, c.Words...)) // hooks of the client's may append to it
}

// key is the first one.
func (c *Command) key() string { return c.Words[0].(string) }

// goesWith says that one command can do both calls.
func (c *Command) goesWith(other *Command) bool {
	return c.Script == other.Script && c.Keys == other.Keys && len(c.Words) == len(other.Words)
}
