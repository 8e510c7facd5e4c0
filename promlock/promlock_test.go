//go:build go1.25

package promlock_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/locktest"
	"github.com/latchkey-go/latchkey/promlock"
)

// scrape returns what Prometheus would see, without comments.
func scrape(t testing.TB, c *promlock.Collector) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(w.Body.String()), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "#")
	})
}

// moved returns the lines that are not in before.
func moved(before, after []string) []string {
	return slices.DeleteFunc(slices.Clone(after), func(line string) bool { return slices.Contains(before, line) })
}

var background = context.Background()

// Each kind of event moves exactly these series.
func TestEvents(t *testing.T) {
	for name, test := range map[string]struct {
		event core.Event
		want  []string
	}{
		"waiting": {core.Event{Kind: core.EventWaiting}, []string{`latchkey_lock_waiting{form="exclusive",name="n"} 3`}},
		"acquired": {core.Event{Kind: core.EventAcquired, Waited: 2 * time.Second}, []string{
			`latchkey_lock_calls_total{form="exclusive",name="n",outcome="acquired",reason=""} 2`,
			`latchkey_lock_held{form="exclusive",name="n"} 2`,
			`latchkey_lock_wait_seconds_bucket{form="exclusive",name="n",le="10"} 2`,
			`latchkey_lock_wait_seconds_bucket{form="exclusive",name="n",le="+Inf"} 2`,
			`latchkey_lock_wait_seconds_sum{form="exclusive",name="n"} 2`,
			`latchkey_lock_wait_seconds_count{form="exclusive",name="n"} 2`,
			`latchkey_lock_waiting{form="exclusive",name="n"} 1`,
		}},
		"reentered": {core.Event{Kind: core.EventAcquired, Reentry: true, Waited: time.Second}, []string{
			`latchkey_lock_calls_total{form="exclusive",name="n",outcome="reentered",reason=""} 1`,
			`latchkey_lock_waiting{form="exclusive",name="n"} 1`,
		}},
		"busy": {core.Event{Kind: core.EventBusy, Reason: "no_wait", Waited: time.Second}, []string{
			`latchkey_lock_calls_total{form="exclusive",name="n",outcome="busy",reason="no_wait"} 1`,
			`latchkey_lock_waiting{form="exclusive",name="n"} 1`,
		}},
		"failed": {core.Event{Kind: core.EventFailed, Reason: "unavailable"}, []string{
			`latchkey_lock_calls_total{form="exclusive",name="n",outcome="failed",reason="unavailable"} 1`,
			`latchkey_lock_waiting{form="exclusive",name="n"} 1`,
		}},
		"released": {core.Event{Kind: core.EventReleased, HeldFor: 500 * time.Millisecond}, []string{
			`latchkey_lock_held{form="exclusive",name="n"} 0`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="n",le="1"} 1`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="n",le="10"} 1`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="n",le="+Inf"} 1`,
			`latchkey_lock_hold_seconds_sum{form="exclusive",name="n"} 0.5`,
			`latchkey_lock_hold_seconds_count{form="exclusive",name="n"} 1`,
		}},
		"unconfirmed": {core.Event{Kind: core.EventReleased, Reason: "unconfirmed", Err: core.ErrUnavailable}, []string{
			`latchkey_lock_held{form="exclusive",name="n"} 0`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="n",le="1"} 1`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="n",le="10"} 1`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="n",le="+Inf"} 1`,
			`latchkey_lock_hold_seconds_count{form="exclusive",name="n"} 1`,
			`latchkey_lock_unconfirmed_releases_total{form="exclusive",name="n"} 1`,
		}},
		"lost": {core.Event{Kind: core.EventLost, Reason: "deleted", HeldFor: 20 * time.Second}, []string{
			`latchkey_lock_held{form="exclusive",name="n"} 0`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="n",le="+Inf"} 1`,
			`latchkey_lock_hold_seconds_sum{form="exclusive",name="n"} 20`,
			`latchkey_lock_hold_seconds_count{form="exclusive",name="n"} 1`,
			`latchkey_lock_losses_total{form="exclusive",name="n",reason="deleted"} 1`,
		}},
		"grant missed": {core.Event{Kind: core.EventGrantMissed}, []string{`latchkey_missed_grants_total 1`}},
		"unheard":      {core.Event{Kind: core.EventUnheard}, []string{`latchkey_unheard_total 1`}},
		"compensating": {core.Event{Kind: core.EventCompensating}, []string{`latchkey_pending_compensations 1`}},
		"compensated":  {core.Event{Kind: core.EventCompensated}, []string{`latchkey_pending_compensations -1`}},
		"load": {core.Event{Kind: core.EventLoad, Load: &core.Load{
			Server: "b:2", Window: 12, Answer: 250 * time.Millisecond, Waiting: 9, Shed: 7, Overloaded: true,
		}}, []string{
			`latchkey_redis_answer_seconds{server="b:2"} 0.25`,
			`latchkey_redis_overloaded{server="b:2"} 1`,
			`latchkey_redis_shed_total{server="b:2"} 10`,
			`latchkey_redis_window{server="b:2"} 12`,
		}},
		"load again": {core.Event{Kind: core.EventLoad, Load: &core.Load{Server: "a:1", Window: 6, Answer: time.Millisecond, Shed: 1}}, []string{
			`latchkey_redis_answer_seconds{server="a:1"} 0.001`,
			`latchkey_redis_overloaded{server="a:1"} 0`,
			`latchkey_redis_shed_total{server="a:1"} 4`,
			`latchkey_redis_window{server="a:1"} 6`,
		}},
		"overdue":        {core.Event{Kind: core.EventOverdue}, []string{`latchkey_lock_overdue_total{form="exclusive",name="n"} 1`}},
		"renewal failed": {core.Event{Kind: core.EventRenewalFailed}, []string{`latchkey_lock_renewal_failures_total{form="exclusive",name="n"} 1`}},
		"refused":        {core.Event{Kind: core.EventRefused, Reason: "no_wait", Status: 409}, []string{`latchkey_refusals_total{form="exclusive",name="n",reason="no_wait",status="409"} 1`}},
		"task refused":   {core.Event{Kind: core.EventRefused, Reason: "no_wait"}, []string{`latchkey_refusals_total{form="exclusive",name="n",reason="no_wait",status=""} 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // so that no hold grows older
				c, ctx := promlock.New(1, 10), background
				tell := func(e core.Event) {
					e.Name, e.Form, e.Key = "n", "exclusive", "secret"
					ctx = c.Observe(ctx, e)
				}
				tell(core.Event{Kind: core.EventWaiting})
				tell(core.Event{Kind: core.EventAcquired})
				tell(core.Event{Kind: core.EventWaiting})
				tell(core.Event{Kind: core.EventWaiting})
				tell(core.Event{Kind: core.EventLoad, Load: &core.Load{Server: "a:1", Window: 64, Answer: time.Second, Shed: 3, Overloaded: true}})
				tell(core.Event{Kind: core.EventLoad, Load: &core.Load{Window: 64, Answer: time.Second}})
				tell(core.Event{Kind: core.EventLoad, Load: &core.Load{Server: "b:2", Window: 64, Answer: time.Second, Shed: 3}})
				before := scrape(t, c)
				tell(test.event)
				after := scrape(t, c)
				if got := moved(before, after); !slices.Equal(got, test.want) {
					t.Errorf("moved\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(test.want, "\n\t"))
				}
				if strings.Contains(strings.Join(after, ""), "secret") {
					t.Error("the key is in a label")
				}
			})
		})
	}
}

// The age of a hold is that of the oldest, whoever ends first, and however they are nested. Each Collector knows its own.
func TestTheOldestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := promlock.New()
		locker := locktest.New(t, core.Observe(c), core.Observe(promlock.New()))
		ages := func(orders, stock string) {
			t.Helper()
			for name, age := range map[string]string{"orders": orders, "stock": stock} {
				want := `latchkey_lock_oldest_hold_seconds{form="exclusive",name="` + name + `"} ` + age
				if lines := scrape(t, c); age != "" && !slices.Contains(lines, want) {
					t.Errorf("no %s", want)
				}
			}
		}
		lock := func(ctx context.Context, key, name string) *core.Lock {
			k, err := locker.Lock(ctx, key, core.Name(name))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			return k
		}
		unlock := func(k *core.Lock) {
			if err := k.Unlock(background); err != nil {
				t.Error(err)
			}
		}
		first := lock(background, "1", "orders")
		second := lock(background, "2", "orders")
		nested := lock(first.Context(), "3", "stock")
		again := lock(nested.Context(), "1", "orders")
		ages("240", "120")
		unlock(again)
		unlock(first)
		ages("180", "120")
		unlock(second)
		ages("0", "120")
		unlock(nested)
		ages("0", "0")
	})
}

func TestALockerMovesTheMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := promlock.New(1, 10)
		locker := locktest.New(t, core.Observe(c), core.Name("orders"))
		release := make(chan struct{})
		done := make(chan error)
		for range 2 {
			go func() {
				done <- locker.Do(background, "42", func(ctx context.Context) error {
					<-release
					return locker.Do(ctx, "42", func(context.Context) error { return nil })
				})
			}()
		}
		synctest.Wait()
		lines := scrape(t, c)
		for _, want := range []string{`latchkey_lock_held{form="exclusive",name="orders"} 1`, `latchkey_lock_waiting{form="exclusive",name="orders"} 1`} {
			if !slices.Contains(lines, want) {
				t.Errorf("while one holds it: no %s", want)
			}
		}
		time.Sleep(5 * time.Second)
		close(release)
		if err := errors.Join(<-done, <-done); err != nil {
			t.Fatal(err)
		}
		lines = scrape(t, c)
		for _, want := range []string{
			`latchkey_lock_held{form="exclusive",name="orders"} 0`,
			`latchkey_lock_waiting{form="exclusive",name="orders"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="acquired",reason=""} 2`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="reentered",reason=""} 2`,
			`latchkey_lock_wait_seconds_bucket{form="exclusive",name="orders",le="1"} 1`,
			`latchkey_lock_wait_seconds_bucket{form="exclusive",name="orders",le="10"} 2`,
			`latchkey_lock_hold_seconds_sum{form="exclusive",name="orders"} 5`,
		} {
			if !slices.Contains(lines, want) {
				t.Errorf("in the end: no %s", want)
			}
		}
		if t.Failed() {
			t.Log(strings.Join(lines, "\n"))
		}
	})
}

// Of those who share a lock each counts: the gauge is how many there are at once.
func TestHoldersOfOneLockAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := promlock.New()
		locker := locktest.New(t, core.Observe(c), core.Name("exports"))
		const in = `latchkey_lock_held{form="permits",name="exports"} `
		var taken []*core.Lock
		for _, want := range []string{in + "1", in + "2"} {
			k, err := locker.Lock(background, "42", core.Permits(2))
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, k)
			if lines := scrape(t, c); !slices.Contains(lines, want) {
				t.Errorf("no %s", want)
			}
		}
		if err := errors.Join(taken[0].Unlock(background), taken[1].Unlock(background)); err != nil {
			t.Fatal(err)
		}
		if lines := scrape(t, c); !slices.Contains(lines, in+"0") {
			t.Errorf("no %s0", in)
		}
	})
}

func TestBadBucketsPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	promlock.New(1, 1)
}

func TestTheVersionIsShown(t *testing.T) {
	// The test is built from the sources of the module.
	if lines := scrape(t, promlock.New()); !slices.ContainsFunc(lines, func(line string) bool {
		return strings.HasPrefix(line, `latchkey_build_info{version="`) && strings.HasSuffix(line, `"} 1`) && !strings.Contains(line, `""`)
	}) {
		t.Errorf("%q", lines)
	}
}
