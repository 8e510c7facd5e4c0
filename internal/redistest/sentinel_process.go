package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// watcher is a sentinel process. It cannot be restarted, for its own file and
// not its arguments say what it does.
type watcher struct {
	*Server
	client *redis.SentinelClient
}

// watch starts sentinel number i.
func (s *Sentinel) watch(tb testing.TB, i int) (*watcher, error) {
	dir, err := makeDirectory()
	if err != nil {
		return nil, err
	}
	w := &watcher{Server: &Server{binary: s.servers[0].binary, dir: dir, ownDir: true}}
	tb.Cleanup(func() {
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
	})
	for range 20 {
		w.takePort()
		if err = w.run(s.config(w.Server, i)); !errors.Is(err, errPortTaken) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	options := &redis.Options{Addr: w.Addr()}
	quiet(options)
	w.client = redis.NewSentinelClient(options)
	tb.Cleanup(func() { _ = w.client.Close() })
	w.hurry()
	return w, nil
}

// config is what sentinel number i reads first, and then rewrites.
func (s *Sentinel) config(w *Server, i int) string {
	// When three ask for votes at once each may vote for itself, and nobody is
	// elected for a long time. With two the vote of the third decides.
	silence := 500 * time.Millisecond
	if i == watchers-1 {
		silence *= 4
	}
	lines := []string{
		"bind 127.0.0.1",
		fmt.Sprintf("port %d", w.port),
		fmt.Sprintf("dir %q", w.dir),
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", watchedName, s.servers[0].port, watcherQuorum),
		fmt.Sprintf("sentinel down-after-milliseconds %s %d", watchedName, silence.Milliseconds()),
		fmt.Sprintf("sentinel failover-timeout %s 3000", watchedName),
		fmt.Sprintf("sentinel parallel-syncs %s 1", watchedName),
	}
	if p := s.servers[0].password(); p != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %s", watchedName, p))
	}
	return strings.Join(lines, "\n") + "\n"
}

// run starts the process and returns when it answers.
func (w *watcher) run(config string) error {
	path := filepath.Join(w.dir, "sentinel.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	p, err := startProcess(w.binary, w.dir, nil, []string{path, "--sentinel"})
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.process, w.stopped = p, false
	w.mu.Unlock()
	switch poll(patience, func() bool { return !p.running() || w.answers(p) }); {
	case p.portTaken():
		return errPortTaken
	case !p.running():
		return fmt.Errorf("redistest: the sentinel ended: %s", p.output())
	case !w.answers(p):
		return fmt.Errorf("redistest: the sentinel does not answer: %s", p.output())
	}
	return nil
}

// hurry shortens what a sentinel waits for by itself, where it can: Redis 7 does.
// It also keeps it from standing idle for half a minute because the machine was
// busy for two seconds.
func (w *watcher) hurry() {
	for name, value := range map[string]int{
		"info-period": 500, "ask-period": 100, "publish-period": 250, "tilt-trigger": 60_000, "tilt-period": 1000,
	} {
		_ = w.client.Process(context.Background(), redis.NewStatusCmd(context.Background(), "sentinel", "debug", name, value))
	}
}
