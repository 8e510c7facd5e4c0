package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Monitor collects every command that a server runs.
type Monitor struct {
	server *Server
	conn   *rawConn
	ended  chan struct{}

	mu    sync.Mutex
	lines []MonitorLine
}

// MonitorLine is one command, as Redis ran it.
type MonitorLine struct {
	Time   float64 // Unix seconds, by the clock of Redis
	Client string  // host:port; "lua" for a command inside a script
	Lua    bool    // runs inside a script, whose own EVALSHA has a line too
	Args   []string
}

// Name is the command, in lower case.
func (l MonitorLine) Name() string { return strings.ToLower(l.Args[0]) }

// Monitor begins to watch, and returns when Redis has confirmed it. It ends
// with the test. Redis leaves out administrative commands (CONFIG, CLIENT KILL)
// and unknown ones.
func (s *Server) Monitor(tb testing.TB) *Monitor {
	tb.Helper()
	conn, err := s.dialRaw()
	if err != nil {
		tb.Fatalf("monitor: %v", err)
	}
	if r, err := conn.call("monitor"); err != nil || r.text != "OK" {
		tb.Fatalf("monitor: %s, %v", r.text, err)
	}
	_ = conn.SetDeadline(time.Time{})
	m := &Monitor{server: s, conn: conn, ended: make(chan struct{})}
	go m.read()
	tb.Cleanup(m.stop)
	return m
}

func (m *Monitor) read() {
	defer close(m.ended)
	for {
		r, err := readReply(m.conn.r)
		if err != nil {
			return
		}
		if line, ok := parseMonitorLine(r.text); ok {
			m.mu.Lock()
			m.lines = append(m.lines, line)
			m.mu.Unlock()
		}
	}
}

func (m *Monitor) stop() {
	_ = m.conn.Close()
	<-m.ended
}

// markers tells the marks of Lines from each other.
var markers atomic.Int64

const markerPrefix = "redistest monitor mark "

// Lines returns what Redis has run so far, in order. Every command that was
// answered before the call is in it.
func (m *Monitor) Lines(tb testing.TB) []MonitorLine {
	tb.Helper()
	mark := markerPrefix + strconv.FormatInt(markers.Add(1), 10)
	if r, err := m.server.call("echo", mark); err != nil || r.text != mark {
		tb.Fatalf("monitor: %s, %v", r.text, err)
	}
	var seen []MonitorLine
	Await(tb, patience, "the monitor to catch up", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		seen = seen[:0]
		for _, l := range m.lines {
			switch {
			case !isMark(l):
				seen = append(seen, l)
			case l.Args[1] == mark:
				return true
			}
		}
		return false
	})
	return seen
}

// Stop ends the watch and returns all that Redis ran in it, as Lines does.
func (m *Monitor) Stop(tb testing.TB) []MonitorLine {
	tb.Helper()
	seen := m.Lines(tb)
	m.stop()
	return seen
}

func isMark(l MonitorLine) bool {
	return len(l.Args) == 2 && strings.HasPrefix(l.Args[1], markerPrefix)
}

// parseMonitorLine reads `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`.
func parseMonitorLine(s string) (MonitorLine, bool) {
	var l MonitorLine
	head, rest, ok := strings.Cut(s, "] ")
	if !ok {
		return l, false
	}
	var db int
	if n, _ := fmt.Sscanf(head, "%f [%d %s", &l.Time, &db, &l.Client); n != 3 {
		return l, false
	}
	l.Lua = l.Client == "lua"
	for rest != "" {
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return l, false
		}
		arg, err := strconv.Unquote(quoted)
		if err != nil {
			return l, false
		}
		l.Args = append(l.Args, arg)
		rest = strings.TrimPrefix(rest[len(quoted):], " ")
	}
	return l, len(l.Args) > 0
}
