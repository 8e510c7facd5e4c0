package core

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
)

// Arguments that stand in every command.
var (
	evalsha   any = "evalsha"
	channels  any = channelPrefix
	tokenKept any = tokenLife.Milliseconds()
	voidKept  any = tombstoneLife.Milliseconds()
	noTime    any = int64(0)
	isLate    any = int64(-1)
	one       any = int64(1)
	yes       any = "1"
	no        any = "0"

	usualLease any = defaultLease.Milliseconds()
)

func flag(b bool) any {
	if b {
		return yes
	}
	return no
}

//go:embed scripts/*.lua
var scriptFiles embed.FS

// script is a Lua script as Redis caches it: by the SHA-1 of its text.
type script struct {
	text string
	sha  any // a string
	// decide makes one reply of those of a quorum's members, as soon as no
	// further answer can change it.
	decide func(*tally) (values []any, err error, decided bool)
	// merges says that the script can do several calls: it takes the keys of all, the
	// arguments that they have in common, of which there are so many, and those of
	// each.
	merges bool
	common int
}

var (
	acquireScript     = loadMerging("acquire", 2, decideAcquire)
	releaseScript     = loadMerging("release", 4, decideRelease)
	renewScript       = loadMerging("renew", 0, decideYes)
	inspectScript     = load("inspect", decideInspect)
	forceUnlockScript = load("force_unlock", decideForce)
	writeTokenScript  = load("write_token", decideYes)
)

func load(name string, decide func(*tally) ([]any, error, bool)) *script {
	return newScript(scriptText(name), decide)
}

// loadMerging loads a script that each.lua completes.
func loadMerging(name string, common int, decide func(*tally) ([]any, error, bool)) *script {
	s := newScript(scriptText(name)+scriptText("each"), decide)
	s.merges, s.common = true, common
	return s
}

func scriptText(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return string(text)
}

func newScript(text string, decide func(*tally) ([]any, error, bool)) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:]), decide: decide}
}

// check refuses a reply that is too short to be one of the script's: the server
// only resembles Redis.
func (s *script) check(values []any) error {
	least := 1
	switch {
	case s == acquireScript && len(values) > 0 && number(values[0]) == 1:
		least = 5
	case s == acquireScript && len(values) > 0 && number(values[0]) == 2:
		least = 3
	case s == inspectScript:
		least = 2
	}
	if len(values) < least {
		return shortReply(len(values), least)
	}
	return nil
}

func shortReply(got, want int) error {
	return fmt.Errorf("a reply of %d values, expected %d", got, want)
}

// call is a script with its keys and arguments.
type call struct {
	script *script
	lock   string      // the first key, which tells the server
	n      int         // of keys
	words  []any       // keys and arguments
	again  *repetition // nil: it is sent once
}

// call takes the keys, of which there are so many, and then the arguments.
func (s *script) call(keys int, words ...any) *call {
	return &call{script: s, lock: text(words[0]), n: keys, words: words}
}

// command is EVALSHA, or EVAL where Redis does not know the script yet.
func (c *call) command(whole bool) []any {
	cmd := make([]any, 0, 3+len(c.words))
	if whole {
		cmd = append(cmd, "eval", c.script.text, c.n)
	} else {
		cmd = append(cmd, evalsha, c.script.sha, c.n)
	}
	return append(cmd, c.words...)
}

func (c *call) keys() []any { return c.words[:c.n] }

// args are those of the call alone, without arguments in common.
func (c *call) args() []any { return c.words[c.n+c.script.common:] }

// values makes a list of a reply, which for the usual outcome is a single value.
func (c *call) values(reply any) ([]any, error) {
	switch v := reply.(type) {
	case []any:
		return v, c.script.check(v)
	case string:
		if c.script != acquireScript || !isToken(v) {
			return nil, fmt.Errorf("an unexpected reply: %.64q", v)
		}
		lease := c.args()[2]
		ttl := lease
		if ms := number(lease); ms < 0 {
			ttl = -ms
		}
		return []any{one, reply, lease, ttl, one}, nil
	case int64:
		if c.script == releaseScript {
			return []any{one, noTime, noTime, reply}, nil
		}
		return []any{v}, nil
	default:
		return nil, fmt.Errorf("an unexpected reply: %T", v)
	}
}

func isToken(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
