package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/promlock"
)

// Requests that wait and are refused, and locks in trouble: what Prometheus scrapes of
// it shows every metric moving.
func TestEveryMetricMoves(t *testing.T) {
	s := newScene(t)
	locker := s.locker(core.NoWait())
	s.want(http.StatusOK, s.start())
	first := s.scrape()

	k := s.hold(locker)
	s.want(http.StatusConflict, s.start())
	s.locker()
	answer := s.start()
	busy := s.await("a call that waits", func(lines []string) bool {
		return slices.Contains(lines, `latchkey_lock_held{form="exclusive",name="orderID"} 1`) &&
			slices.Contains(lines, `latchkey_lock_waiting{form="exclusive",name="orderID"} 1`)
	})
	if err := k.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	s.want(http.StatusOK, answer)

	s.locker(core.MaxHold(time.Millisecond))
	<-s.start()

	locker = s.locker(core.Lease(time.Second))
	k = s.hold(locker)
	if freed, err := locker.ForceUnlock(t.Context(), "orderID=42"); !freed || err != nil {
		t.Fatal(freed, err)
	}
	<-k.Context().Done()

	k = s.hold(s.locker(core.Lease(3 * time.Second)))
	s.redis.SetError("LOADING")
	s.await("a renewal that failed", func(lines []string) bool {
		return !slices.Contains(lines, `latchkey_lock_renewal_failures_total{form="exclusive",name="orderID"} 0`)
	})
	if err := k.Unlock(t.Context()); !errors.Is(err, core.ErrUnavailable) {
		t.Error(err)
	}
	s.redis.SetError("")

	// These tell of messages that do not arrive, which takes another process, of what lasts for a
	// moment only, of the version, and of an overload.
	still := []string{"latchkey_missed_grants_total", "latchkey_unheard_total", "latchkey_pending_compensations", "latchkey_build_info",
		"latchkey_redis_overloaded", "latchkey_redis_shed_total", "latchkey_redis_window"}
	last := s.scrape()
	for _, metric := range s.metrics() {
		if slices.Contains(still, metric) {
			continue
		}
		of := func(lines []string) []string {
			return slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.HasPrefix(line, metric) })
		}
		if slices.Equal(of(first), of(last)) && slices.Equal(of(first), of(busy)) {
			t.Errorf("%s does not move:\n%s", metric, strings.Join(of(last), "\n"))
		}
	}
}

func TestReceiptIsSentOnce(t *testing.T) {
	s := newScene(t)
	s.locker()
	for _, step := range []struct {
		path string
		want int
	}{
		{"/orders/42/receipt?takes=1ms", http.StatusOK},
		{"/orders/42/receipt?takes=1ms", http.StatusConflict},
		{"/orders/43/receipt?takes=1ms", http.StatusOK},
		{"/orders/42/pay?takes=1ms", http.StatusOK}, // a key of its own
	} {
		response, err := http.Post(s.server.URL+step.path, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != step.want {
			t.Errorf("%s is answered %d, want %d", step.path, response.StatusCode, step.want)
		}
	}
}

// scene is the example's server with a Redis to hurt.
type scene struct {
	t         *testing.T
	redis     *miniredis.Miniredis
	collector *promlock.Collector
	server    *httptest.Server
}

func newScene(t *testing.T) *scene {
	before := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what goes wrong on purpose
	s := &scene{t: t, redis: miniredis.RunT(t), collector: promlock.New()}
	s.redis.ClockTTL(true)
	s.server = httptest.NewServer(newMux(s.collector))
	t.Cleanup(func() {
		s.server.Close()
		core.SetDefault(nil)
		slog.SetDefault(before)
	})
	return s
}

// locker makes a Locker with these options the default one.
func (s *scene) locker(opts ...core.Option) *core.Locker {
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr()})
	locker, err := core.New(client, append(opts, core.Observe(s.collector))...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := locker.Close(context.Background()); err != nil {
			s.t.Error(err)
		}
		_ = client.Close()
	})
	core.SetDefault(locker)
	return locker
}

// start sends a request, and returns where its status will arrive.
func (s *scene) start() <-chan int {
	status := make(chan int, 1)
	go func() {
		response, err := http.Post(s.server.URL+"/orders/42/pay", "", nil)
		if err != nil {
			s.t.Error(err)
			status <- 0
			return
		}
		_ = response.Body.Close()
		status <- response.StatusCode
	}()
	return status
}

func (s *scene) want(status int, answers ...<-chan int) {
	s.t.Helper()
	for _, answer := range answers {
		if got := <-answer; got != status {
			s.t.Errorf("status %d, want %d", got, status)
		}
	}
}

// hold takes the lock of the request, as another instance of the program would.
func (s *scene) hold(locker *core.Locker) *core.Lock {
	s.t.Helper()
	k, err := locker.Lock(s.t.Context(), "orderID=42", core.Name("orderID"))
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

// await scrapes until it sees what it waits for.
func (s *scene) await(what string, sees func(lines []string) bool) []string {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(2 * time.Minute); ; <-tick.C {
		lines := s.scrape()
		if sees(lines) {
			return lines
		}
		if time.Now().After(end) {
			s.t.Fatalf("no %s in\n%s", what, strings.Join(lines, "\n"))
		}
	}
}

func (s *scene) scrape() []string {
	s.t.Helper()
	response, err := http.Get(s.server.URL + "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatal(response.Status, err)
	}
	return strings.Split(string(body), "\n")
}

// metrics returns the names of all metrics.
func (s *scene) metrics() []string {
	descriptions := make(chan *prometheus.Desc, 100)
	s.collector.Describe(descriptions)
	close(descriptions)
	names := map[string]bool{}
	for d := range descriptions {
		names[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	if len(names) == 0 {
		s.t.Fatal("no metrics")
	}
	return slices.Sorted(maps.Keys(names))
}
