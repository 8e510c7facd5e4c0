//go:build go1.25

package asynqlock_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/latchkey-go/latchkey/asynqlock"
)

// warnings remembers those of asynq.
type warnings struct {
	silent
	mu    sync.Mutex
	lines []string
}

func (w *warnings) Warn(args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines = append(w.lines, fmt.Sprint(args...))
}

// withoutDrops leaves out what docs/jobs.md says.
type withoutDrops struct{ asynq.Logger }

func (l withoutDrops) Warn(args ...any) {
	if !strings.HasPrefix(fmt.Sprint(args...), "revoke task id=") {
		l.Logger.Warn(args...)
	}
}

// asynq warns of each task that is dropped, unless it is told not to in one of the two ways that docs/jobs.md names.
func TestWarningsOfDroppedTasks(t *testing.T) {
	for name, c := range map[string]struct {
		quiet func(*asynq.Config)
		want  int
	}{
		"as asynq has it":       {func(*asynq.Config) {}, 3},
		"LogLevel":              {func(cfg *asynq.Config) { cfg.LogLevel = asynq.ErrorLevel }, 0},
		"a Logger of one's own": {func(cfg *asynq.Config) { cfg.Logger = withoutDrops{cfg.Logger} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t, time.Millisecond)
				defer s.close()
				config := s.config(s.locker())
				config.OnBusy, config.Inspector, config.Workers, config.TaskCheckInterval = asynqlock.Drop, nil, 0, 0
				release := s.holds(config.Locker, "42")
				log := new(warnings)
				s.start(10, asynqlock.New(config)(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
					t.Error("a task that is dropped has run")
					return nil
				})), func(cfg *asynq.Config) {
					cfg.Logger = log
					c.quiet(cfg)
				})
				s.enqueues(3, "42")
				time.Sleep(5 * time.Second)
				release()
				log.Warn("of something else")
				log.mu.Lock()
				defer log.mu.Unlock()
				dropped := strings.Count(strings.Join(log.lines, "\n"), "revoke task id=")
				if dropped != c.want || len(log.lines) != c.want+1 {
					t.Errorf("%d of %q, want %d", dropped, log.lines, c.want)
				}
			})
		})
	}
}
