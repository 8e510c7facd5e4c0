package faults

import (
	"net"
	"regexp"
	"strconv"
	"time"
)

// grantLease is for how long a release grants a lock.
const grantLease = 250 * time.Millisecond

// grant is the message about it: hold, token and the clock of Redis in µs.
var grant = regexp.MustCompile(`latchkey:hold:(\S+:\d+) \d+ (\d+)\r\n`)

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
