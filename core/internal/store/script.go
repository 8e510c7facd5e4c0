package store

import (
	"embed"
	"regexp"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

const (
	// tombstoneLife is for how long an acquisition that was given up is refused. TCP may
	// bring it later still: then it takes the lock for nobody, until its lease ends. But
	// where calls are cancelled by the thousand, each leaves something for so long.
	tombstoneLife = time.Minute
	// usualLease is the lease of nearly all locks.
	usualLease = 30 * time.Second
)

// Times as the scripts take them. A constant needs no memory as an argument.
const (
	tombstoneKept = int64(tombstoneLife / time.Millisecond)
	usualArg      = int64(usualLease / time.Millisecond)
	noTime        = int64(0)
	isLate        = int64(-1) // in place of a tombstone's
)

func milliseconds(d time.Duration) any {
	if d == usualLease {
		return usualArg
	}
	return d.Milliseconds()
}

func flag(b bool) any {
	if b {
		return "1"
	}
	return "0"
}

//go:embed scripts/*.lua
var scriptFiles embed.FS

// include stands for a file, in a script that another shares a function with.
var include = regexp.MustCompile(`(?m)^-- include \w+$`)

func script(name string) string {
	text, err := scriptFiles.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return include.ReplaceAllStringFunc(string(text), func(line string) string {
		return script(strings.TrimPrefix(line, "-- include "))
	})
}

// replicated says that replicas must have what a script has done.
func replicated(s *conn.Script, did func(reply any) bool) *conn.Script {
	s.Replicate, s.Did = true, did
	return s
}
