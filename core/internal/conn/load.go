package conn

import (
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// loadEvery is how often the load of a server is told while it is asked.
	loadEvery = time.Second
	// overloadLasts is for how long a server counts as overloaded after a command was not sent to it.
	overloadLasts = 2 * time.Second
)

// Load is how much a server, or a quorum, has to do.
type Load struct {
	Server     string        // its address; empty for a quorum, and where the client does not tell it
	Window     int           // so many commands may be in flight
	Answer     time.Duration // how long an answer takes lately
	Waiting    int           // so many commands wait until they can be sent
	Shed       int           // so many were not sent since it was told last, for they would have been answered too late
	Overloaded bool          // it is asked for more than it can do
	For        time.Duration // that it is, or was until now; 0: it has just begun, or has not been
}

// meter tells the load. What it has is guarded by mu, as what is measured.
type meter struct {
	mu      *sync.Mutex
	server  string
	window  *window
	waiting func() int
	tell    func(Load) // does not block

	told       time.Time
	shed       int
	lastShed   time.Time
	overloaded time.Time // since when; zero: it is not
	isStopped  bool
}

// serverOf is the address of a client, if it has one.
func serverOf(client redis.UniversalClient) string {
	if single, ok := client.(*redis.Client); ok && single.Options().Addr != failoverAddr {
		return single.Options().Addr
	}
	return ""
}

// note tells the load now and then. mu is held.
func (m *meter) note(now time.Time) {
	if now.Sub(m.told) >= loadEvery {
		m.tellNow(now, m.overloaded)
	}
}

// tellNow tells the load of a server that is overloaded since then, if it is or was.
func (m *meter) tellNow(now, since time.Time) {
	if m.isStopped {
		return
	}
	l := Load{
		Server: m.server, Window: int(m.window.limit), Answer: m.window.usual, Waiting: m.waiting(), Shed: m.shed,
		Overloaded: !m.overloaded.IsZero(),
	}
	if !since.IsZero() {
		l.For = now.Sub(since)
	}
	m.told, m.shed = now, 0
	m.tell(l)
}

// refuse notes that a command is not sent, and is why. A server that is silent refuses nothing: it may be another that is at
// fault. mu is held.
func (m *meter) refuse() error {
	if m.window.isSilent {
		return ErrNoAnswer
	}
	m.shed++
	m.lastShed = time.Now()
	if m.overloaded.IsZero() {
		m.overloaded = m.lastShed
		m.tellNow(m.lastShed, m.lastShed)
		time.AfterFunc(overloadLasts, m.endOverload)
	}
	n, w := m.waiting()+1, m.window
	return &Overloaded{Waiting: n, Answer: w.usual, After: time.Duration(float64(n) / w.limit * float64(w.usual))}
}

// endOverload ends an overload when nothing was refused for a while.
func (m *meter) endOverload() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, since := time.Now(), m.overloaded
	if rest := overloadLasts - now.Sub(m.lastShed); rest > 0 && !m.isStopped {
		time.AfterFunc(rest, m.endOverload)
		return
	}
	m.overloaded = time.Time{}
	m.tellNow(now, since)
}

// stop ends what is told.
func (m *meter) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.isStopped = true
}
