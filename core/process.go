package core

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// Process is what a Locker says of itself and its process in the owner of each lock
// that it takes.
type Process struct {
	// Name as [Describe] said, or the host's name: up to its first dot, and of that
	// the last 15 bytes.
	Name string
	// PID is the process's number on its host; 0 when it has more than 24 bits.
	PID int
	// Since is when the Locker was made, to the second, by the clock of its machine.
	Since time.Time
}

// ProcessOf reads an owner, such as [Info] or [Lock.Owner] tell it. It reports false
// for one that a call has chosen with [Owner], or that is not latchkey's. Whoever may
// write in Redis can make any owner up. It does not block.
func ProcessOf(owner string) (Process, bool) {
	id, _, numbered := strings.Cut(owner, ":")
	name, rest, named := strings.Cut(id, "@")
	facts, err := base64.RawURLEncoding.DecodeString(rest)
	if !numbered || !named || err != nil || len(facts) != len(processFacts{}) || !processName.MatchString(name) {
		return Process{}, false
	}
	since, pid := binary.BigEndian.Uint32(facts), uint32(facts[4])<<16|uint32(facts[5])<<8|uint32(facts[6])
	return Process{Name: name, PID: int(pid), Since: time.Unix(int64(since), 0)}, true
}

// An owner with a name is not longer than one with a UUID, as Redisson's: it goes to Redis
// with each command, and Redis stores short fields in less.
const maxProcessName = 15

// processFacts are the time, the process id, and what makes it unique and hard to guess.
type processFacts [4 + 3 + 8]byte

// newProcess returns what begins the owner of all locks of one Locker.
func newProcess(name string) string {
	if name == "" {
		host, _ := os.Hostname()
		name = hostPart(host)
	}
	var facts processFacts
	_, _ = rand.Read(facts[:]) // never fails
	binary.BigEndian.PutUint32(facts[:], uint32(time.Now().Unix()))
	pid := os.Getpid()
	if pid >= 1<<24 {
		pid = 0
	}
	facts[4], facts[5], facts[6] = byte(pid>>16), byte(pid>>8), byte(pid)
	return name + "@" + base64.RawURLEncoding.EncodeToString(facts[:])
}

// hostPart is what of a host's name tells it from others, as the end of a pod's does.
func hostPart(host string) string {
	host, _, _ = strings.Cut(host, ".")
	host = foreignInName.ReplaceAllString(host, "_")
	if host == "" {
		return "unnamed"
	}
	return host[max(len(host)-maxProcessName, 0):]
}

var (
	processName   = regexp.MustCompile(fmt.Sprintf(`^[\w.-]{1,%d}$`, maxProcessName))
	foreignInName = regexp.MustCompile(`[^\w.-]`)
)
