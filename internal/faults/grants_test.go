package faults

import (
	"net"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"
)

// grantLease is for how long a release grants a lock.
const grantLease = time.Second

// grant is the message about it: hold, token and the clock of Redis in µs.
var grant = regexp.MustCompile(`([0-9a-f]{40}) \d+ (\d+)\r\n`)

// grantReader learns of locks from what a connection receives: those that a release has
// granted come with a message, to which there is no command.
type grantReader struct {
	net.Conn
	learner learner
	rest    []byte // that may be the beginning of one
}

// longestGrant is more than a message is long.
const longestGrant = 200

func (r *grantReader) Read(p []byte) (int, error) {
	n, err := r.Conn.Read(p)
	r.rest = append(r.rest, p[:n]...)
	for _, m := range grant.FindAllSubmatch(r.rest, -1) {
		at, _ := strconv.ParseInt(string(m[2]), 10, 64)
		age := time.Since(time.UnixMicro(at)) // Redis runs on this machine
		r.learner.deadlines.confirm(r.learner.member, string(m[1]), now()-int64(age)+int64(grantLease))
	}
	r.rest = append(r.rest[:0], r.rest[max(0, len(r.rest)-longestGrant):]...)
	return n, err
}

// grantMessages are faults of the messages about grants: those of the next while are lost,
// late, or come more than once.
func grantMessages(on where) []fault {
	kind := func(name string, delays ...time.Duration) fault {
		return fault{name: "message of a grant " + name, inject: func(n *nemesis) int {
			var met atomic.Int64
			l := on(n)
			for _, p := range l {
				p.Messages(func(message []byte) []time.Duration {
					if !grant.Match(message) {
						return []time.Duration{0}
					}
					met.Add(1)
					return delays
				})
			}
			// A process that has missed a grant is granted none for a while.
			for range 10 {
				n.pause(lease)
				if met.Load() > 0 {
					break
				}
			}
			for _, p := range l {
				p.Messages(nil)
			}
			return int(met.Load())
		}}
	}
	return []fault{
		kind("lost"),
		kind("late", grantLease*4/10),
		kind("too late", grantLease*12/10),
		kind("doubled", 0, 0, 300*time.Millisecond),
	}
}
