package promlock_test

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/promlock"
)

const (
	alerts     = "../docs/alerts.yml"
	alertTests = "../docs/alerts_test.yml"
)

// first is what may be heard of a name before anything else.
var first = map[string]core.Event{
	"a call":    {Kind: core.EventWaiting, Name: "orders", Form: "exclusive"},
	"a refusal": {Kind: core.EventRefused, Name: "orders", Form: "exclusive", Reason: "invalid_key", Status: 400},
}

// To Prometheus a counter that appears with 1 has not increased.
func TestWhatAlertsAndTheDashboardReadIsThereFromTheBeginning(t *testing.T) {
	for what, event := range first {
		c := promlock.New()
		c.Observe(background, event)
		lines := scrape(t, c)
		for _, want := range []string{
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="acquired",reason=""} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="reentered",reason=""} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="busy",reason="no_wait"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="busy",reason="wait_over"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="busy",reason="max_waiters"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="busy",reason="deadlock"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="busy",reason="order"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="busy",reason="canceled"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="busy",reason="deadline"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="failed",reason="unavailable"} 0`,
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="failed",reason="invalid_key"} 0`,
			`latchkey_lock_overdue_total{form="exclusive",name="orders"} 0`,
			`latchkey_lock_renewal_failures_total{form="exclusive",name="orders"} 0`,
			`latchkey_lock_unconfirmed_releases_total{form="exclusive",name="orders"} 0`,
			`latchkey_lock_losses_total{form="exclusive",name="orders",reason="deleted"} 0`,
			`latchkey_lock_losses_total{form="exclusive",name="orders",reason="expired"} 0`,
			`latchkey_lock_losses_total{form="exclusive",name="orders",reason="max_hold"} 0`,
			`latchkey_lock_losses_total{form="exclusive",name="orders",reason="closed"} 0`,
			`latchkey_lock_wait_seconds_bucket{form="exclusive",name="orders",le="1"} 0`,
			`latchkey_lock_hold_seconds_bucket{form="exclusive",name="orders",le="1"} 0`,
			`latchkey_refusals_total{form="exclusive",name="orders",reason="no_wait",status="409"} 0`,
			`latchkey_refusals_total{form="exclusive",name="orders",reason="wait_over",status="409"} 0`,
			`latchkey_refusals_total{form="exclusive",name="orders",reason="max_waiters",status="409"} 0`,
			`latchkey_refusals_total{form="exclusive",name="orders",reason="canceled",status="499"} 0`,
			`latchkey_refusals_total{form="exclusive",name="orders",reason="unavailable",status="503"} 0`,
		} {
			if !slices.Contains(lines, want) {
				t.Errorf("after %s: no %s", what, want)
			}
		}
	}
}

// A call that finds no permit free is refused with another status.
func TestRefusalsOfPermitsAreThereFromTheBeginning(t *testing.T) {
	c := promlock.New()
	c.Observe(background, core.Event{Kind: core.EventWaiting, Name: "exports", Form: "exclusive"})
	c.Observe(background, core.Event{Kind: core.EventWaiting, Name: "exports", Form: "permits"})
	lines := scrape(t, c)
	for _, want := range []string{
		`latchkey_lock_waiting{form="exclusive",name="exports"} 1`,
		`latchkey_lock_waiting{form="permits",name="exports"} 1`,
		`latchkey_refusals_total{form="exclusive",name="exports",reason="wait_over",status="409"} 0`,
		`latchkey_refusals_total{form="permits",name="exports",reason="wait_over",status="429"} 0`,
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %s", want)
		}
	}
}

var (
	reading = regexp.MustCompile(`latchkey[_:]([a-z_]+)(?::increase5m)?(?:\{([^}]*)\})?`)
	matcher = regexp.MustCompile(`([a-z]+)(=~|!=|=)"([^"]*)"`)
	labels  = regexp.MustCompile(`([a-z]+)="([^"]*)"`)
)

// selects reports whether matchers select a series with these labels.
func selects(matchers, series string) bool {
	of := map[string]string{}
	for _, l := range labels.FindAllStringSubmatch(series, -1) {
		of[l[1]] = l[2]
	}
	for _, m := range matcher.FindAllStringSubmatch(matchers, -1) {
		value, known := of[m[1]]
		hit := value == m[3]
		if m[2] == "=~" {
			hit = regexp.MustCompile("^(?:" + m[3] + ")$").MatchString(value)
		}
		if !known || hit == (m[2] == "!=") {
			return false
		}
	}
	return true
}

// An alert that reads a label or a metric that is not there never fires.
func TestAlertsReadWhatTheCollectorShows(t *testing.T) {
	selectors := map[string]bool{}
	for _, found := range reading.FindAllStringSubmatch(read(t, alerts), -1) {
		name := "latchkey_" + strings.TrimSuffix(found[1], "_total")
		if found[2] == `reason="setup"` {
			continue // for as long as it is there
		}
		selectors[name+"{"+found[2]] = true
	}
	if len(selectors) < 8 {
		t.Fatalf("only %d: %v", len(selectors), selectors)
	}
	for what, event := range first {
		c := promlock.New()
		c.Observe(background, event)
		lines := scrape(t, c)
		for selector := range selectors {
			name, matchers, _ := strings.Cut(selector, "{")
			if !slices.ContainsFunc(lines, func(line string) bool {
				metric, series, _ := strings.Cut(strings.TrimSuffix(line, " 0"), "{")
				return strings.TrimSuffix(metric, "_total") == name && strings.HasSuffix(line, " 0") && selects(matchers, series)
			}) {
				t.Errorf("after %s nothing is shown as 0 for %s}", what, selector)
			}
		}
	}
}

// Whoever is on call reads beside a rule what has happened.
func TestEachAlertSaysWhatItMeans(t *testing.T) {
	rules := regexp.MustCompile(`(?m)^ *- alert: (\w+)(.*)$`).FindAllStringSubmatch(read(t, alerts), -1)
	if len(rules) == 0 {
		t.Fatal("no alert was found")
	}
	for _, rule := range rules {
		if len(rule[2]) < len(" # a few words") {
			t.Errorf("%s: %s has no comment", alerts, rule[1])
		}
	}
}

// The link of an alert leads to its heading.
func TestAlertsLeadToTheirRunbooks(t *testing.T) {
	const page = "https://github.com/latchkey-go/latchkey/blob/main/docs/operations.md"
	links := regexp.MustCompile(`- alert: (\w+) .*\n(?: +[^-\s].*\n)* +annotations: \{runbook_url: "(.*)#(.*)"\}\n`).FindAllStringSubmatch(read(t, alerts), -1)
	if n := strings.Count(read(t, alerts), "runbook_url"); len(links) != n || n < 4 {
		t.Fatalf("%d links are read, of %d", len(links), n)
	}
	for _, link := range links {
		if link[2] != page || link[3] != strings.ToLower(link[1]) || !strings.Contains(read(t, "../docs/operations.md"), "\n### "+link[1]+"\n") {
			t.Errorf("%s leads to %s#%s", link[1], link[2], link[3])
		}
	}
}

// What is 0 at the start of a test must be so by the Collector's doing.
func TestTheTestsOfAlertsBeginAsTheCollectorDoes(t *testing.T) {
	c := promlock.New()
	c.Observe(background, first["a refusal"])
	shown := scrape(t, c)
	series := regexp.MustCompile(`series: '(latchkey_\w+)\{job="\w+", instance="\w+"(?:, form="(\w+)", name="\w+"(.*))?\}'\n\s+values: '(?:_x\d+ )?(0?)`).
		FindAllStringSubmatch(read(t, alertTests), -1)
	if n := strings.Count(read(t, alertTests), "series: "); len(series) != n || n < 20 {
		t.Fatalf("%d series are read, of %d", len(series), n)
	}
	for _, s := range series {
		want := s[1] + `{form="exclusive",name="orders"` + strings.ReplaceAll(s[3], ", ", ",") + "} 0"
		if s[2] == "" {
			want = s[1] + " 0"
		}
		unread := strings.Contains(want, `reason="canceled"`) || strings.Contains(want, `status=""`) || strings.Contains(want, `outcome="busy"`)
		if s[2] != "shared" && s[2] != "permits" && s[4] == "0" && !unread && !slices.Contains(shown, want) {
			t.Errorf("the Collector does not show %s", want)
		}
	}
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is missing, so the tests of the alerts are skipped: .ci/install promtool")
	}
	if out, err := exec.Command(promtool, "test", "rules", alertTests).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
