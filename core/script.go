package core

import (
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"fmt"
)

//go:embed scripts/*.lua
var scriptFiles embed.FS

// script is a Lua script as Redis caches it: by the SHA-1 of its text.
type script struct {
	text, sha string
	// decide makes one reply of those of a quorum's members, as soon as no
	// further answer can change it.
	decide func(*tally) (values []any, err error, decided bool)
}

var (
	acquireScript     = load("acquire", decideAcquire)
	releaseScript     = load("release", decideRelease)
	renewScript       = load("renew", decideYes)
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
		return fmt.Errorf("a reply of %d values, expected %d", len(values), least)
	}
	return nil
}

// call is a script with its keys and arguments.
type call struct {
	script *script
	keys   []string
	args   []any
}

// command builds EVALSHA, or EVAL where Redis does not know the script yet.
func (c *call) command(whole bool) []any {
	cmd := make([]any, 0, 3+len(c.keys)+len(c.args))
	if whole {
		cmd = append(cmd, "eval", c.script.text)
	} else {
		cmd = append(cmd, "evalsha", c.script.sha)
	}
	cmd = append(cmd, len(c.keys))
	for _, k := range c.keys {
		cmd = append(cmd, k)
	}
	return append(cmd, c.args...)
}
