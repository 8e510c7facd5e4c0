package promlock

import (
	"container/list"
	"context"
	"runtime/debug"
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchkey-go/latchkey/core"
)

// Collector is an Observer that counts. Give it to [core.Observe], of one Locker or
// of several, and register it. It is safe for concurrent use and does not block.
type Collector struct {
	wait, hold          *prometheus.HistogramVec
	waiting, held       *prometheus.GaugeVec
	holds               holds
	calls               *prometheus.CounterVec
	losses              *prometheus.CounterVec
	overdue             *prometheus.CounterVec
	renewalFailures     *prometheus.CounterVec
	unconfirmedReleases *prometheus.CounterVec
	refusals            *prometheus.CounterVec
	missedGrants        prometheus.Counter
	unheard             prometheus.Counter
	compensations       prometheus.Gauge
	answer, window      *prometheus.GaugeVec // by server
	overloaded          *prometheus.GaugeVec
	shed                *prometheus.CounterVec
	build               prometheus.Gauge
	known               sync.Map // names that have come, with their forms
}

var (
	_ core.Observer        = (*Collector)(nil)
	_ prometheus.Collector = (*Collector)(nil)
)

// New returns a Collector. The buckets are the upper bounds, in seconds, of both
// histograms; without any they go from 1 ms to 60 s. LockHeldLong of docs/alerts.yml
// reads that of 60 s. It panics when they do not increase.
func New(buckets ...float64) *Collector {
	if len(buckets) == 0 {
		buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	}
	for i, bound := range buckets[1:] {
		if bound <= buckets[i] {
			panic("promlock: the buckets do not increase; give them in order, as in New(0.1, 1, 10)")
		}
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "latchkey", Name: name, Help: help, Buckets: buckets,
		}, []string{"name", "form"})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "latchkey", Name: name, Help: help}, []string{"name", "form"})
	}
	counter := func(name, help string, more ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "latchkey", Name: name, Help: help},
			append([]string{"name", "form"}, more...))
	}
	process := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Namespace: "latchkey", Name: name, Help: help}
	}
	server := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts(process(name, help)), []string{"server"})
	}
	build := process("build_info", "The version of latchkey in this program.")
	build.ConstLabels = prometheus.Labels{"version": version()}
	c := &Collector{
		wait:    histogram("lock_wait_seconds", "How long calls waited for a lock that they got."),
		hold:    histogram("lock_hold_seconds", "How long locks were held, until released or lost."),
		waiting: gauge("lock_waiting", "Calls that want a lock now."),
		held:    gauge("lock_held", "Locks that are held now, each as often as it has holders here."),
		holds: holds{
			age:    gauge("lock_oldest_hold_seconds", "For how long the oldest lock that is held now has been."),
			byName: map[[2]string]*list.List{},
		},
		calls:               counter("lock_calls_total", "Calls that wanted a lock, by what became of them.", "outcome", "reason"),
		losses:              counter("lock_losses_total", "Locks that ended before they were unlocked.", "reason"),
		overdue:             counter("lock_overdue_total", "Locks that were held longer than MaxHold permits."),
		renewalFailures:     counter("lock_renewal_failures_total", "Renewals that failed and were tried again."),
		unconfirmedReleases: counter("lock_unconfirmed_releases_total", "Releases that Redis has not confirmed in time."),
		refusals:            counter("refusals_total", "Requests and tasks that middleware refused.", "reason", "status"),
		missedGrants:        prometheus.NewCounter(prometheus.CounterOpts(process("missed_grants_total", "Grants that a waiting call noticed late or never."))),
		unheard:             prometheus.NewCounter(prometheus.CounterOpts(process("unheard_total", "Attempts to subscribe to messages from Redis that failed; waiting calls poll."))),
		compensations:       prometheus.NewGauge(prometheus.GaugeOpts(process("pending_compensations", "Commands of unknown outcome that Redis has not confirmed to be undone."))),
		answer:              server("redis_answer_seconds", "How long an answer of Redis takes lately."),
		window:              server("redis_window", "How many commands may be in flight to Redis."),
		overloaded:          server("redis_overloaded", "1 while Redis is asked for more than it can do, and calls are refused."),
		shed: prometheus.NewCounterVec(
			prometheus.CounterOpts(process("redis_shed_total", "Calls that were refused because Redis is asked for more than it can do.")),
			[]string{"server"},
		),
		build: prometheus.NewGauge(prometheus.GaugeOpts(build)),
	}
	c.build.Set(1)
	return c
}

// version is that of latchkey in the program; "(devel)" where it was built from its sources.
func version() string {
	const module = "github.com/latchkey-go/latchkey"
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" {
				return m.Version
			}
		}
	}
	return "(devel)"
}

// Observe counts an event. It returns ctx, or, of a lock that is acquired, one that leads to it.
func (c *Collector) Observe(ctx context.Context, e core.Event) context.Context {
	switch e.Kind {
	case core.EventWaiting:
		c.prepare(e.Name, e.Form)
		c.waiting.WithLabelValues(e.Name, e.Form).Inc()
	case core.EventAcquired:
		if e.Reentry {
			c.ended(e, "reentered")
			break
		}
		c.ended(e, "acquired")
		c.wait.WithLabelValues(e.Name, e.Form).Observe(e.Waited.Seconds())
		c.held.WithLabelValues(e.Name, e.Form).Inc()
		return c.holds.begin(ctx, e.Name, e.Form)
	case core.EventBusy:
		c.ended(e, "busy")
	case core.EventFailed:
		c.ended(e, "failed")
	case core.EventReleased:
		c.free(ctx, e)
		if e.Err != nil {
			c.unconfirmedReleases.WithLabelValues(e.Name, e.Form).Inc()
		}
	case core.EventLost:
		c.free(ctx, e)
		c.losses.WithLabelValues(e.Name, e.Form, e.Reason).Inc()
	case core.EventOverdue:
		c.overdue.WithLabelValues(e.Name, e.Form).Inc()
	case core.EventRenewalFailed:
		c.renewalFailures.WithLabelValues(e.Name, e.Form).Inc()
	case core.EventRefused:
		c.prepare(e.Name, e.Form) // a request without a key wants no lock
		status := ""
		if e.Status != 0 {
			status = strconv.Itoa(e.Status)
		}
		c.refusals.WithLabelValues(e.Name, e.Form, e.Reason, status).Inc()
	case core.EventGrantMissed:
		c.missedGrants.Inc()
	case core.EventUnheard:
		c.unheard.Inc()
	case core.EventCompensating:
		c.compensations.Inc()
	case core.EventCompensated:
		c.compensations.Dec()
	case core.EventLoad:
		c.load(e.Load)
	}
	return ctx
}

func (c *Collector) load(l *core.Load) {
	overloaded := 0.0
	if l.Overloaded {
		overloaded = 1
	}
	c.answer.WithLabelValues(l.Server).Set(l.Answer.Seconds())
	c.window.WithLabelValues(l.Server).Set(float64(l.Window))
	c.overloaded.WithLabelValues(l.Server).Set(overloaded)
	c.shed.WithLabelValues(l.Server).Add(float64(l.Shed))
}

// prepare shows what alerts and the dashboard read as 0 from the beginning: to
// Prometheus a counter that appears with 1, or with 250, has not increased.
func (c *Collector) prepare(name, form string) {
	if _, known := c.known.LoadOrStore([2]string{name, form}, true); known {
		return
	}
	for _, counter := range []*prometheus.CounterVec{c.overdue, c.renewalFailures, c.unconfirmedReleases} {
		counter.WithLabelValues(name, form)
	}
	for _, reason := range []string{"deleted", "expired", "max_hold", "closed"} {
		c.losses.WithLabelValues(name, form, reason)
	}
	c.holds.prepare(name, form)
	c.wait.WithLabelValues(name, form)
	c.hold.WithLabelValues(name, form)
	c.calls.WithLabelValues(name, form, "acquired", "")
	c.calls.WithLabelValues(name, form, "reentered", "")
	for _, reason := range []string{"no_wait", "wait_over", "max_waiters", "deadlock", "order", "canceled", "deadline"} {
		c.calls.WithLabelValues(name, form, "busy", reason)
	}
	for _, reason := range []string{"unavailable", "overloaded", "invalid_key"} {
		c.calls.WithLabelValues(name, form, "failed", reason)
	}
	busy := "409"
	if form == "permits" {
		busy = "429"
	}
	for _, reason := range []string{"no_wait", "wait_over", "max_waiters"} {
		c.refusals.WithLabelValues(name, form, reason, busy)
	}
	c.refusals.WithLabelValues(name, form, "invalid_key", "400")
	c.refusals.WithLabelValues(name, form, "canceled", "499")
	c.refusals.WithLabelValues(name, form, "dropped", "")
	for _, reason := range []string{"unavailable", "overloaded"} {
		c.refusals.WithLabelValues(name, form, reason, "503")
	}
}

// ended counts a call that has its outcome.
func (c *Collector) ended(e core.Event, outcome string) {
	c.waiting.WithLabelValues(e.Name, e.Form).Dec()
	c.calls.WithLabelValues(e.Name, e.Form, outcome, e.Reason).Inc()
}

func (c *Collector) free(ctx context.Context, e core.Event) {
	c.holds.end(ctx)
	c.held.WithLabelValues(e.Name, e.Form).Dec()
	c.hold.WithLabelValues(e.Name, e.Form).Observe(e.HeldFor.Seconds())
}

// Describe is for the registry.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.all() {
		m.Describe(to)
	}
}

// Collect is for the registry.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	c.holds.show()
	for _, m := range c.all() {
		m.Collect(to)
	}
}

func (c *Collector) all() []prometheus.Collector {
	return []prometheus.Collector{
		c.wait, c.hold, c.waiting, c.held, c.holds.age, c.calls, c.losses, c.overdue, c.renewalFailures, c.unconfirmedReleases, c.refusals,
		c.missedGrants, c.unheard, c.compensations, c.answer, c.window, c.overloaded, c.shed, c.build,
	}
}
