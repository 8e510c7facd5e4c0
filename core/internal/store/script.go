package store

import (
	"cmp"
	"embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
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
)

func milliseconds(d time.Duration) any {
	if d == usualLease {
		return usualArg
	}
	return d.Milliseconds()
}

// leaseArg is negative when nobody renews the lease.
func leaseArg(d time.Duration, fixed bool) any {
	if fixed {
		return -d.Milliseconds()
	}
	return milliseconds(d)
}

func flag(b bool) any {
	if b {
		return "1"
	}
	return "0"
}

// scriptFiles are the commands, and the parts that these include.
//
//go:embed scripts/*.lua scripts/parts/*.lua
var scriptFiles embed.FS

// include stands for a part, in a script or in another part.
var include = regexp.MustCompile(`(?m)^ *-- include \w+$`)

// comment is a line that does nothing. Redis takes no text of 16 KiB from a client that has
// yet to give its password, and does not say then what is missing.
var comment = regexp.MustCompile(`(?m)^ *--.*\n`)

// constant is a name for a value, which is written in its place: an upvalue of each function that
// uses it would cost each command.
var constant = regexp.MustCompile(`(?m)^local ([A-Z_]+) = (\S+).*\n`)

// scripts are those of a Store, with the words by which it publishes: as arguments they
// would cost each command.
type scripts struct {
	acquire, renew, release  *conn.Script
	inspect, force, handOver *conn.Script
}

// Every Store uses one of these. To put the texts together takes a millisecond.
var (
	plainScripts   = sync.OnceValue(func() *scripts { return newScripts("PUBLISH", true) })
	clusterScripts = sync.OnceValue(func() *scripts { return newScripts("PUBLISH", false) })
	shardedScripts = sync.OnceValue(func() *scripts { return newScripts("SPUBLISH", true) })
)

// newScripts returns scripts that publish with a command. counts says that the server
// which runs them knows all who subscribe.
func newScripts(publish string, counts bool) *scripts {
	pubsub := map[string]string{"PUBLISH": "'" + publish + "'", "COUNTS": strconv.FormatBool(counts)}
	text := func(name string) string {
		text := comment.ReplaceAllString(expand(name), "")
		for _, c := range constant.FindAllStringSubmatch(text, -1) {
			value := cmp.Or(pubsub[c[1]], c[2])
			text = regexp.MustCompile(`\b`+c[1]+`\b`).ReplaceAllString(strings.ReplaceAll(text, c[0], ""), value)
		}
		return text
	}
	s := &scripts{
		acquire:  conn.NewScript(text("acquire")),
		renew:    conn.NewScript(text("renew")),
		release:  conn.NewScript(text("release")),
		inspect:  conn.NewScript(text("inspect")),
		force:    conn.NewScript(text("force")),
		handOver: conn.NewScript(text("hand_over")),
	}
	s.acquire.Replicate, s.acquire.Did = true, did
	s.renew.Replicate, s.renew.Did = true, did
	s.handOver.Replicate, s.handOver.Did = true, did
	s.acquire.Merged = conn.NewMerged(text("take_all"), 3)
	s.renew.Merged = conn.NewMerged(text("renew_all"), 1)
	s.release.Merged = conn.NewMerged(text("free_all"), 1)
	return s
}

// expand reads a script with the parts that it includes.
func expand(path string) string {
	text, err := scriptFiles.ReadFile("scripts/" + path + ".lua")
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return include.ReplaceAllStringFunc(string(text), func(line string) string {
		return expand("parts/" + strings.TrimPrefix(strings.TrimSpace(line), "-- include "))
	})
}
