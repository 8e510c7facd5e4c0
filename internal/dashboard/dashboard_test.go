package dashboard

import (
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

var live = flag.Bool("dashboard.live", false, "look at the dashboard with a real Prometheus, for half a minute")

// provoked are curves that must have been above 0, by panel and legend. Each query must
// have one, whether its panel stands here or not.
var provoked = map[string][]string{
	"Calls by outcome": {
		"acquired", "busy no_wait", "busy wait_over", "busy max_waiters", "busy canceled",
		"failed unavailable", "failed invalid_key",
	},
	"Held and waiting": {"held orderID", "waiting orderID"},
	"Lost locks":       {"orderID deleted", "orderID expired"},
	"Refused requests and tasks": {
		"400 invalid_key", "409 no_wait", "409 wait_over", "409 max_waiters", "499 canceled", "503 unavailable",
	},
}

// ofOverload are panels that stay at 0 here, for this Redis is not overloaded.
var ofOverload = map[string]bool{"Shed calls": true, "Overloaded": true}

// alarmed is what becomes of the alerts: those that must last first are pending.
var alarmed = []string{
	"LockLost firing", "LockRedisFails pending", "LockRedisOverloaded inactive", "LockRedisSlow pending",
	"LockRenewalsFail pending", "LockOverdue firing",
	"LockHeldLong inactive", "LockDropsTasks inactive", "LockProcessSilent inactive", // which take longer
	"LockPolls pending", "LockReleasesUnconfirmed firing", "LockWaitsInVain pending",
	"LockContention pending", "LockWaits pending", "LockSetup inactive",
}

func TestDashboardShowsWhatHappens(t *testing.T) {
	if !*live {
		t.Skip("this takes half a minute and needs Prometheus: make dashboard")
	}
	server := redistest.Start(t)
	s := startShop(t, server.Addr())
	w := startPrometheus(t, strings.TrimPrefix(s.url, "http://"))

	w.report("all is quiet")
	s.quiet()
	w.await("both locks", "count(count by (name) (latchkey_lock_held)) == 2")
	s.want(http.StatusOK, "/orders/1/pay")
	w.await("a call", expand("sum(rate(latchkey_lock_calls_total[$__rate_interval])) > 0", ""))
	w.await("no more calls", expand("sum(rate(latchkey_lock_calls_total[$__rate_interval])) == 0", ""))
	w.checkNumbers()

	w.report("a handler hangs; a request comes twice, one has a bad key, one is given up")
	overdue := s.hang()
	s.clicks()
	s.badKey()
	s.leave()
	w.report("a crowd wants one lock")
	s.crowd(w)
	w.report("somebody deletes a lock in Redis")
	s.deleteHeld(server)
	<-overdue
	w.report("Redis stops for some seconds")
	s.outage(server)
	w.awaitScrapes()

	w.report("what there is to see:")
	w.checkNumbers()
	w.checkNames()
	w.checkPanels()
	w.checkAlerts()
}

// report prints what happens, and when.
func (w *watcher) report(what string) {
	fmt.Printf("%3.0f s  %s\n", time.Since(w.from).Seconds(), what)
}

// checkNumbers looks at the numbers on top of the page. "0", "NaN" and "No data" are not
// the same, and what was once is not what is now.
func (w *watcher) checkNumbers() {
	for _, p := range readPanels(w.t) {
		if p.Type != "stat" {
			continue
		}
		for _, target := range p.Targets {
			if curves := w.curves(target, ".*"); len(curves) != 1 || math.IsNaN(curves[0].last) {
				w.t.Errorf("%q has no number: %+v", p.Title, curves)
			}
		}
	}
}

// checkNames looks at one lock at a time.
func (w *watcher) checkNames() {
	names, err := w.api.labelValues(w.t.Context(), "latchkey_lock_calls_total", "name")
	if err != nil || !slices.Equal(names, []string{"orderID", "receipt"}) {
		w.t.Fatalf("names to choose from: %v, %v", names, err)
	}
	for _, p := range readPanels(w.t) {
		for _, target := range p.Targets {
			if !strings.Contains(target.Expr, "$name") {
				continue // of a server
			}
			for _, name := range append(names, "(orderID|receipt)") {
				if len(w.curves(target, name)) == 0 {
					w.t.Errorf("%s is empty for %s", p.Title, name)
				}
			}
			if curves := w.curves(target, "gone"); len(curves) > 0 {
				w.t.Errorf("%s shows %+v for a name that is not there", p.Title, curves)
			}
		}
	}
}

// checkPanels prints a table of all queries and what they show.
func (w *watcher) checkPanels() {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "panel\tcurves\tabove 0\tgreatest\tquery")
	for _, p := range readPanels(w.t) {
		shown := map[string]bool{}
		for _, target := range p.Targets {
			curves := w.curves(target, ".*")
			moved, high := 0, curve{}
			for _, c := range curves {
				if c.high > 0 {
					moved++
					shown[c.legend] = true
				}
				if c.high > high.high {
					high = c
				}
			}
			if moved == 0 && !ofOverload[p.Title] {
				w.t.Errorf("%s shows nothing: %s", p.Title, target.Expr)
			}
			fmt.Fprintf(table, "%s\t%d\t%d\t%.4g %s\t%s\n", p.Title, len(curves), moved, high.high, high.legend, target.Expr)
		}
		for _, want := range provoked[p.Title] {
			if !shown[want] {
				w.t.Errorf("%s does not show %q, only %v", p.Title, want, shown)
			}
		}
	}
	if err := table.Flush(); err != nil {
		w.t.Error(err)
	}
}

func (w *watcher) checkAlerts() {
	rules, err := w.api.rules(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var states []string
	for _, r := range rules {
		if r.Health != "ok" {
			w.t.Errorf("%s: %s", r.Name, r.LastError)
		}
		if r.State != "" {
			states = append(states, r.Name+" "+r.State)
		}
	}
	fmt.Printf("alerts: %s\n", strings.Join(states, ", "))
	if !slices.Equal(states, alarmed) {
		w.t.Errorf("alerts are %q, want %q", states, alarmed)
	}
}
