package core

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
	"slices"
)

// Arguments that stand in every command.
var (
	evalsha   any = "evalsha"
	tokenKept any = tokenLife.Milliseconds()
	voidKept  any = tombstoneLife.Milliseconds()
	noTime    any = int64(0)
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
	// merges says that the script takes many keys at once, with their arguments in
	// the same order, and returns one value for each.
	merges bool
}

var (
	acquireScript     = load("acquire", decideAcquire)
	releaseScript     = load("release", decideRelease)
	renewScript       = load("renew", decideYes).merging()
	inspectScript     = load("inspect", decideInspect)
	forceUnlockScript = load("force_unlock", decideForce)
	writeTokenScript  = load("write_token", decideYes)
)

func load(name string, decide func(*tally) ([]any, error, bool)) *script {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	sum := sha1.Sum(text)
	return &script{text: string(text), sha: hex.EncodeToString(sum[:]), decide: decide}
}

func (s *script) merging() *script {
	s.merges = true
	return s
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
	if s.merges {
		err, _ := values[0].(error)
		return err
	}
	return nil
}

func shortReply(got, want int) error {
	return fmt.Errorf("a reply of %d values, expected %d", got, want)
}

// call is a script with its keys and arguments.
type call struct {
	script *script
	lock   string // the first key, which tells the server
	cmd    []any  // EVALSHA
}

// call takes the keys, of which there are so many, and then the arguments.
func (s *script) call(keys int, lock string, rest ...any) *call {
	cmd := make([]any, 0, 4+len(rest))
	cmd = append(cmd, evalsha, s.sha, keys, lock)
	return &call{script: s, lock: lock, cmd: append(cmd, rest...)}
}

// command is EVALSHA, or EVAL where Redis does not know the script yet.
func (c *call) command(whole bool) []any {
	if !whole {
		return c.cmd
	}
	cmd := slices.Clone(c.cmd)
	cmd[0], cmd[1] = "eval", c.script.text
	return cmd
}

// word returns the n-th key or argument, from 0.
func (c *call) word(n int) any { return c.cmd[3+n] }
