package faults

import (
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// links are some of the proxies between workers and Redis.
type links []*redistest.Proxy

func (l links) kill() (killed int) {
	for _, p := range l {
		killed += p.KillConnections()
	}
	return killed
}

func (l links) blackHole(on bool) {
	for _, p := range l {
		p.BlackHole(on)
	}
}

func (l links) latency(d time.Duration) {
	for _, p := range l {
		p.Latency(d)
	}
}

func (l links) connections() (n int) {
	for _, p := range l {
		n += p.Connections()
	}
	return n
}

// wires are all links of a run: for each worker, to each server.
type wires [][]*redistest.Proxy

func (w wires) ofWorker(i int) links { return w[i] }

func (w wires) ofServer(i int) (out links) {
	for _, own := range w {
		out = append(out, own[i])
	}
	return out
}

func (w wires) all() (out links) {
	for _, own := range w {
		out = append(out, own...)
	}
	return out
}
