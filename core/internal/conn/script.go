package conn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Script is a Lua script as Redis caches it: by the SHA-1 of its text. Its fields are set before it is used
// first.
type Script struct {
	// Replicate says that replicas are to have what it writes, where the Server waits for any. When Did is
	// true of its reply it has written, if without a change: WAIT may know nothing of what another connection
	// wrote.
	Replicate bool
	// Did tells from a reply whether the script did what compensation would undo, and what replicas must
	// have. nil: it never does.
	Did func(reply any) bool
	// Merged does what several commands of this script do, where one server has all keys: see [NewMerged]. That of a
	// merged script is itself.
	Merged *Script

	text, digest []byte
	keys         int // so many of each call a merged script takes
}

// NewScript returns a script that does one call at a time.
func NewScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{text: []byte(text), digest: hex.AppendEncode(nil, sum[:])}
}

// NewMerged returns a script that does several calls at once. It takes the first keys of all calls, then their
// second ones and so on, so many of each, then the first arguments of each. It returns a list with the reply to
// each call, or one value that is the reply to all. A call whose reply is nil it has not done: that is sent by
// itself.
//
// A command may be of the merged script itself, with several of each key: such are merged with others of as
// many. That one was not done is its answer.
func NewMerged(text string, keys int) *Script {
	s := NewScript(text)
	s.Merged, s.keys = s, keys
	return s
}

func (s *Script) isMerged() bool { return s.Merged == s }

// noteScript takes how a server has answered a script. One that has known it before has started anew, or was told to forget scripts.
func (p *pipeline) noteScript(s *Script, err error) {
	switch _, isKnown := p.known.Load(s); {
	case err == nil && !isKnown:
		p.known.Store(s, true)
	case isUnknownScript(err) && isKnown:
		p.known.Clear() // of the others nobody needs to be told
		p.server.config.Forgot()
	}
}

func (s *Script) did(reply any) bool { return s.Did != nil && s.Did(reply) }

// Command is one call of a script. It is not changed while it is in use, which for one that was given up can
// be after Do has returned.
type Command struct {
	Script *Script
	// Words begins with the keys; the arguments follow. The first key, a string, decides which server of a
	// cluster is asked.
	Words []any
	Keys  int16 // the number of them
	// Tag is what each text in the reply ends with, and no reply to another command; of merged calls, that of the first.
	Tag string
	// MergedArgs is how many of the arguments of a call its merged script takes; 0: it goes by itself.
	MergedArgs int8
	// Urgent ones go first where not all can be sent.
	Urgent bool
	// Resends permits Do to send the command again: it counts once, and has the same reply each time. nil: it
	// is sent once.
	Resends *Resends
	// Compensator is called once, perhaps later, when the script may have run or may yet run and Do has not
	// reported that it did: on any goroutine, and must not block. nil: that does no harm. Of queued commands
	// it is not called.
	Compensator interface{ Compensate(*Server) }
}

// line is the command, but for its first two words, which set knows. It is in memory, if that is enough.
func (c *Command) line(memory []any) []any {
	if n := 3 + len(c.Words); n > cap(memory) {
		memory = make([]any, n)
	}
	return append(append(memory[:2], int(c.Keys)), c.Words...)
}

// calls is how many calls its script does: so many it has of each key.
func (c *Command) calls() int {
	if c.Script.isMerged() {
		return int(c.Keys) / c.Script.keys
	}
	return 1
}

func (c *Command) key() string { return c.Words[0].(string) }

// once is a command that go-redis must not send again by itself: a lost reply would run a script twice, on a
// cluster even with retries switched off.
type once struct {
	redis.Cmd
	script scriptWord
	line   [9]any  // memory for the words of most commands
	direct *direct // of the pipeline by which it goes by itself
}

// set makes it EVALSHA, or EVAL where Redis does not know the script yet. The line has room for two words in front.
func (o *once) set(ctx context.Context, s *Script, whole bool, command interface{ wrote() }, line []any) {
	line[0], line[1], o.script = "evalsha", &o.script, scriptWord{s.digest, command}
	if whole {
		line[0], o.script.text = "eval", s.text
	}
	o.Cmd = *redis.NewCmd(ctx, slices.Clip(line)...) // hooks of the client's may append to it
}

func (*once) NoRetry() bool { return true }

// scriptWord is a word that go-redis asks for its text when it writes the command to a connection. Hooks, and what finds
// the node of a cluster, read the words also of commands that never leave.
type scriptWord struct {
	text    []byte
	command interface{ wrote() }
}

func (w *scriptWord) String() string { return string(w.text) }
func (w *scriptWord) MarshalBinary() ([]byte, error) {
	w.command.wrote()
	return w.text, nil
}

// reply is what Redis has replied: nil is a reply, and no error.
func (o *once) reply() (any, error) {
	if err := o.Err(); err != redis.Nil {
		return o.Val(), err
	}
	return nil, nil
}
