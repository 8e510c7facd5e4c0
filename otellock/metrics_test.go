package otellock_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core"
)

func TestMetrics(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		tell := func(kind core.EventKind, e core.Event) {
			e.Kind, e.Name, e.Form, e.Key = kind, "orders", "shared", "secret"
			tel.observer.Observe(background, e)
		}
		for range 6 {
			tell(core.EventWaiting, core.Event{})
		}
		tell(core.EventAcquired, core.Event{Waited: time.Second})
		tell(core.EventAcquired, core.Event{Waited: 2 * time.Second})
		tell(core.EventAcquired, core.Event{Waited: 2 * time.Second})
		tell(core.EventAcquired, core.Event{Reentry: true})
		tell(core.EventBusy, core.Event{Reason: "no_wait"})
		want(t, "in the middle", slices.DeleteFunc(tel.metrics(), func(line string) bool { return strings.Contains(line, "duration") }),
			"latchkey.lock.held {lock} [form=shared name=orders] 3",
			"latchkey.lock.waiting {call} [form=shared name=orders] 1")
		tell(core.EventFailed, core.Event{Reason: "unavailable", Waited: 3 * time.Second})
		tell(core.EventRenewalFailed, core.Event{})
		tell(core.EventOverdue, core.Event{})
		tell(core.EventReleased, core.Event{HeldFor: 4 * time.Second})
		tell(core.EventReleased, core.Event{HeldFor: 5 * time.Second, Reason: "unconfirmed", Err: core.ErrUnavailable})
		tell(core.EventLost, core.Event{HeldFor: 6 * time.Second, Reason: "expired"})
		tell(core.EventRefused, core.Event{Reason: "no_wait", Status: 409})
		tell(core.EventRefused, core.Event{Reason: "no_wait"})
		tell(core.EventGrantMissed, core.Event{})
		tell(core.EventUnheard, core.Event{})
		for range 3 {
			tell(core.EventCompensating, core.Event{})
		}
		tell(core.EventCompensated, core.Event{})
		for _, l := range []core.Load{
			{Window: 9, Answer: time.Second, Shed: 2, Overloaded: true}, {Server: "a:1", Window: 64, Shed: 3, Overloaded: true},
			{Server: "a:1", Window: 32, Answer: 250 * time.Millisecond, Shed: 4},
		} {
			tel.observer.Observe(background, core.Event{Kind: core.EventLoad, Load: &l})
		}
		want(t, "in the end", tel.metrics(),
			"latchkey.compensations.pending {command} [] 2",
			"latchkey.grants.missed {grant} [] 1",
			"latchkey.lock.held {lock} [form=shared name=orders] 0",
			"latchkey.lock.hold.duration s [error.type=expired form=shared name=orders outcome=lost] 1 in 6",
			"latchkey.lock.hold.duration s [form=shared name=orders outcome=released] 1 in 4",
			"latchkey.lock.hold.duration s [form=shared name=orders outcome=unconfirmed] 1 in 5",
			"latchkey.lock.overdue {lock} [form=shared name=orders] 1",
			"latchkey.lock.renewal.failures {failure} [form=shared name=orders] 1",
			"latchkey.lock.wait.duration s [error.type=unavailable form=shared name=orders outcome=failed] 1 in 3",
			"latchkey.lock.wait.duration s [form=shared name=orders outcome=acquired] 3 in 5",
			"latchkey.lock.wait.duration s [form=shared name=orders outcome=busy reason=no_wait] 1 in 0",
			"latchkey.lock.wait.duration s [form=shared name=orders outcome=reentered] 1 in 0",
			"latchkey.lock.waiting {call} [form=shared name=orders] 0",
			"latchkey.redis.answer.time s [] 1",
			"latchkey.redis.answer.time s [latchkey.redis.server=a:1] 0.25",
			"latchkey.redis.overloaded 1 [] 1",
			"latchkey.redis.overloaded 1 [latchkey.redis.server=a:1] 0",
			"latchkey.redis.shed {call} [] 2",
			"latchkey.redis.shed {call} [latchkey.redis.server=a:1] 7",
			"latchkey.redis.window {command} [] 9",
			"latchkey.redis.window {command} [latchkey.redis.server=a:1] 32",
			"latchkey.refusals {refusal} [form=shared http.response.status_code=409 name=orders reason=no_wait] 1",
			"latchkey.refusals {refusal} [form=shared name=orders reason=no_wait] 1",
			"latchkey.unheard {attempt} [] 1",
		)
		for _, page := range []string{"doc.go", "../docs/observability.md"} {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			for _, metric := range tel.metrics() {
				if name, _, _ := strings.Cut(metric, " "); !strings.Contains(string(text), name) {
					t.Errorf("%s does not know %s", page, name)
				}
			}
		}
	})
}

func TestFormsAreCountedApart(t *testing.T) {
	bubble(t, func(t *testing.T, tel *telemetry) {
		for _, form := range []string{"exclusive", "permits", "permits"} {
			tel.observer.Observe(background, core.Event{Kind: core.EventWaiting, Form: form})
		}
		want(t, "forms", tel.metrics(),
			"latchkey.lock.waiting {call} [form=exclusive] 1",
			"latchkey.lock.waiting {call} [form=permits] 2")
	})
}
