package core

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"os"
	"regexp"
	"strings"
	"time"
)

// Process is what a Locker says of itself and its process in the owner of each lock that it takes.
type Process struct {
	Name  string    // as [Describe] said, or the end of the host's name, up to its first dot
	PID   int       // the process's number on its host; 0 when it has more than 24 bits
	Since time.Time // when the Locker was made, to the second, by the clock of its machine
}

// ProcessOf reads an owner, such as [Info] or [Lock.Owner] tell it. It reports false for one that a
// call has chosen with [Owner], or that is not latchkey's. Whoever may write in Redis can make any
// owner up. It does not block.
func ProcessOf(owner string) (Process, bool) {
	m := processOwner.FindStringSubmatch(owner)
	if m == nil {
		return Process{}, false
	}
	facts, _ := base64.RawURLEncoding.DecodeString(m[2]) // of any such word
	since, pid := binary.BigEndian.Uint32(facts), binary.BigEndian.Uint32(facts[3:])&mostPID
	return Process{Name: m[1], PID: int(pid), Since: time.Unix(int64(since), 0)}, true
}

// Describe is what the Locker's process is called in the owner of each of its locks, for people who
// look at them: in the lock page, in Redis, in logs. Processes may have one name, of 1 to 15
// letters, digits, dots, dashes and underscores. The default is the end of the host's name. Option
// of [New] and [NewQuorum] only.
func Describe(name string) Option {
	if !processName.MatchString(name) {
		return badOption("Describe(%q): give 1 to 15 letters (a to z, A to Z), digits, dots, dashes and underscores", name)
	}
	return ofNew("Describe", func(s *settings) { s.describe = name })
}

const mostPID = 1<<24 - 1

// newProcess returns what begins the owner of all locks of one Locker: its name and, in 20
// characters, the time, the process id, and what makes it unique and hard to guess. It is not
// longer than a UUID, which Redisson has there, for it goes to Redis with each command.
func newProcess(name string) string {
	if name == "" {
		host, _ := os.Hostname()
		name = hostPart(host)
	}
	var facts [4 + 3 + 8]byte
	if pid := os.Getpid(); pid <= mostPID {
		binary.BigEndian.PutUint32(facts[3:], uint32(pid)) // its first byte is 0
	}
	binary.BigEndian.PutUint32(facts[:], uint32(time.Now().Unix()))
	_, _ = rand.Read(facts[4+3:]) // never fails
	return name + "@" + base64.RawURLEncoding.EncodeToString(facts[:])
}

// hostPart is what of a host's name tells it from others, as the end of a pod's does.
func hostPart(host string) string {
	host, _, _ = strings.Cut(host, ".")
	host = foreignInName.ReplaceAllString(host, "_")
	if host == "" {
		return "unnamed"
	}
	return host[max(len(host)-15, 0):]
}

var (
	processName   = regexp.MustCompile(`^[\w.-]{1,15}$`)
	processOwner  = regexp.MustCompile(`(?:^|:)([\w.-]{1,15})@([\w-]{20}):`) // behind what an adapter has begun it with
	foreignInName = regexp.MustCompile(`[^\w.-]`)
)
