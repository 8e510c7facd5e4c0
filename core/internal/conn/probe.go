package conn

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// One command may do several calls only where one server has all keys. Behind the address of a client there
// may be a node of a cluster, which refuses such a command, or a proxy that spreads keys over servers: it
// takes the command to the server of its first key, where the others are not. So a key is written, and looked
// for from the servers of other keys, before calls are merged.
const (
	probes       = 16 // two servers look like one by chance once in 65,536
	probeTimeout = time.Second
	probeEvery   = 10 * time.Second // until they look like one
	probeScript  = "return redis.call('EXISTS', ARGV[1])"
)

type probe struct {
	undivided atomic.Bool // one server has all keys
	begun     interval
}

// merges says whether one command may do several calls. It does not block: as long as that is not known, it
// is false. So it is for a cluster.
func (p *pipeline) merges() bool {
	if p.probe.undivided.Load() {
		return true
	}
	if _, isCluster := p.server.client.(*redis.ClusterClient); !isCluster && p.probe.begun.begins(probeEvery) {
		p.server.config.Workers.Start(p.seek)
	}
	return false
}

// Merges reports whether a command may be of a merged script, as far as is known. It does not block.
func (s *Server) Merges() bool {
	_, isRing := s.client.(*redis.Ring) // each of its servers has some keys
	return !isRing && s.pipelineTo(s.client).merges()
}

// seek probes.
func (p *pipeline) seek() {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	mark := p.server.config.Prefix + "latchkey:probe:" + uuid.NewString()
	if p.client.Set(ctx, mark, 1, probeEvery).Err() != nil {
		return
	}
	pipe := p.client.Pipeline()
	seen := make([]*redis.Cmd, probes)
	for i := range seen {
		seen[i] = pipe.Eval(ctx, probeScript, []string{mark + ":" + strconv.Itoa(i)}, mark)
	}
	_, _ = pipe.Exec(ctx) // each command keeps its own error
	p.client.Del(ctx, mark)
	for _, cmd := range seen {
		if n, err := cmd.Int(); err != nil || n != 1 {
			return
		}
	}
	p.probe.undivided.Store(true)
}
