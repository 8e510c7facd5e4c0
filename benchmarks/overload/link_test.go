package overload

import (
	"bytes"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// link is a connection: what is read from the client waits in the server's queue, and answers go back a little later.
type link struct {
	server   *server
	client   net.Conn
	redis    net.Conn
	pending  atomic.Int64 // commands in the queue, and one more for the client, until it closes the connection
	gone     atomic.Bool  // the client has closed it
	greeting atomic.Bool  // it is a subscription's, in its handshake
	mu       sync.Mutex
	answers  []answer
	more     chan struct{}
	end      chan struct{}
	endOnce  sync.Once
}

type answer struct {
	bytes []byte
	at    time.Time
}

func (l *link) finish() {
	l.endOnce.Do(func() {
		close(l.end)
		_ = l.redis.Close()
		_ = l.client.Close()
	})
}

func (l *link) readCommands() {
	var pending []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(chunk)
		pending = append(pending, chunk[:n]...)
		for {
			size, words := nextCommand(pending)
			if size == 0 {
				break
			}
			r := request{link: l, bytes: bytes.Clone(pending[:size]), cost: costOf(words)}
			pending = pending[size:]
			if l.isGreeting(words[0]) {
				_, _ = l.redis.Write(r.bytes)
				continue
			}
			l.pending.Add(1)
			l.server.add(r)
		}
		if err != nil {
			l.pending.Add(1)
			l.gone.Store(true)
			l.done()
			return
		}
	}
}

// isGreeting says that a command belongs to a subscription's handshake: that takes no time. go-redis holds a mutex
// meanwhile, and whoever waits for a mutex stops the fake time.
func (l *link) isGreeting(command string) bool {
	name := strings.ToUpper(command)
	if l.greeting.Load() && name != "HELLO" && name != "CLIENT" {
		l.greeting.Store(false)
	}
	return l.greeting.Load()
}

// done is called after each command: the last one ends a connection that the client has closed.
func (l *link) done() {
	if l.pending.Add(-1) == 0 && l.gone.Load() {
		go func() {
			time.Sleep(10 * time.Millisecond) // the embedded Redis has read it by then
			l.finish()
		}()
	}
}

func (l *link) readAnswers() {
	chunk := make([]byte, 64<<10)
	for {
		n, err := l.redis.Read(chunk)
		if n > 0 {
			l.mu.Lock()
			l.answers = append(l.answers, answer{bytes.Clone(chunk[:n]), time.Now().Add(latency)})
			l.mu.Unlock()
			select {
			case l.more <- struct{}{}:
			default:
			}
		}
		if err != nil {
			l.finish()
			return
		}
	}
}

func (l *link) sendAnswers() {
	for {
		l.mu.Lock()
		var next []answer
		next, l.answers = l.answers, nil
		l.mu.Unlock()
		for _, a := range next {
			if !l.greeting.Load() {
				time.Sleep(time.Until(a.at))
			}
			_, _ = l.client.Write(a.bytes)
		}
		if len(next) > 0 {
			continue
		}
		select {
		case <-l.more:
		case <-l.end:
			return
		}
	}
}

// subscribing says that go-redis dials for a subscription.
func subscribing() bool {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers)])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "redis/go-redis/v9.(*PubSub).") {
			return true
		}
		if !more {
			return false
		}
	}
}
