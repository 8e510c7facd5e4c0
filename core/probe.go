package core

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// One command may do calls of several locks only where one server has them all. Behind
// the address of a client there may be a node of a cluster, which refuses such a
// command, or a proxy that spreads keys over servers: it takes the command to the
// server of its first key, where the other locks are not. So a key is written, and
// looked for from the servers of other keys, before calls are merged.
const (
	probes       = 16 // two servers look like one by chance once in 65,536
	probeTimeout = time.Second
	probeEvery   = 10 * time.Second // until they look like one
	probeScript  = "return redis.call('EXISTS', ARGV[1])"
)

// merges says whether one command may name keys of several locks. It does not block:
// as long as that is not known, none may.
func (l *lane) merges() bool {
	if l.undivided.Load() {
		return true
	}
	now := int64(thisMoment())
	if at := l.probeAt.Load(); now >= at && l.probeAt.CompareAndSwap(at, now+int64(probeEvery)) {
		l.node.tasks.start(l.probe)
	}
	return false
}

func (l *lane) probe() {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	mark := l.node.prefix + "latchkey:probe:" + uuid.NewString()
	if l.client.Set(ctx, mark, 1, probeEvery).Err() != nil {
		return
	}
	pipe := l.client.Pipeline()
	seen := make([]*redis.Cmd, probes)
	for i := range seen {
		seen[i] = pipe.Eval(ctx, probeScript, []string{mark + ":" + strconv.Itoa(i)}, mark)
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	for _, cmd := range seen {
		if n, err := cmd.Int(); err != nil || n != 1 {
			return
		}
	}
	l.undivided.Store(true)
}
