package store

import (
	"embed"
	"io/fs"
	"sync"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
	"github.com/latchkey-go/latchkey/internal/script"
)

const (
	// tombstoneLife is for how long an acquisition that was given up is refused. TCP may bring it later still: then it
	// takes the lock for nobody, until its lease ends. But where calls are cancelled by the thousand, each leaves
	// something for so long.
	tombstoneLife = time.Minute
	// usualLease is the lease of nearly all locks.
	usualLease = 30 * time.Second
)

// leaseArg is in ms, and negative when nobody renews the lease.
func leaseArg(d time.Duration, fixed bool) any {
	switch {
	case fixed:
		return -d.Milliseconds()
	case d == usualLease:
		return int64(usualLease / time.Millisecond) // a constant needs no memory
	}
	return d.Milliseconds()
}

//go:embed scripts
var scriptFiles embed.FS

// scripts are those of a Store, with the words by which it publishes: as arguments they would cost each command.
type scripts struct {
	acquire, renew, release  *conn.Script
	inspect, force, handOver *conn.Script
	downgrade                *conn.Script
}

// Every Store uses one of these. To put the texts together takes a millisecond. The nodes of a cluster pass plain
// messages on to one another.
var (
	plainScripts   = sync.OnceValue(func() *scripts { return newScripts(script.Plain) })
	clusterScripts = sync.OnceValue(func() *scripts { return newScripts(script.Cluster) })
	shardedScripts = sync.OnceValue(func() *scripts { return newScripts(script.Sharded) })
)

func newScripts(pubsub map[string]string) *scripts {
	folder, _ := fs.Sub(scriptFiles, "scripts")
	text := func(name string) string {
		text, err := script.Text(folder, name, pubsub)
		if err != nil {
			panic(err) // the files are part of the binary
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

		downgrade: conn.NewScript(text("downgrade")),
	}
	s.acquire.Merged = conn.NewMerged(text("take_all"), 3)
	s.renew.Merged = conn.NewMerged(text("renew_all"), 1)
	s.release.Merged = conn.NewMerged(text("free_all"), 1)
	for _, s := range []*conn.Script{s.acquire, s.renew, s.handOver, s.downgrade, s.acquire.Merged} {
		s.Replicate, s.Did = true, did
	}
	return s
}
