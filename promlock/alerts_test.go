package promlock_test

import (
	"os"
	"os/exec"
	"path/filepath"
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

// firstLoad is heard of a server when it is asked first.
var firstLoad = core.Event{Kind: core.EventLoad, Load: &core.Load{Server: "redis:6379"}}

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
			`latchkey_lock_calls_total{form="exclusive",name="orders",outcome="failed",reason="overloaded"} 0`,
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
			`latchkey_refusals_total{form="exclusive",name="orders",reason="overloaded",status="503"} 0`,
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
		c.Observe(background, firstLoad)
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

// Whoever is called reads what has happened, how bad it is, and where the next step stands.
func TestEachAlertSaysWhatItMeans(t *testing.T) {
	const pages = "https://github.com/latchkey-go/latchkey/blob/main/docs/"
	rules := strings.Split(read(t, alerts), "- alert: ")[1:]
	if len(rules) < 12 {
		t.Fatalf("%d alerts were found", len(rules))
	}
	said := regexp.MustCompile(`labels: {severity: (?:critical|warning|info)}
 +annotations:
 +summary: ".{20,80}"
 +description: ".{20,120}"
 +runbook_url: ` + pages + `(\w+\.md)#(\S+)\s*$`)
	for _, rule := range rules {
		name, _, _ := strings.Cut(rule, "\n")
		found := said.FindStringSubmatch(rule)
		if found == nil {
			t.Errorf("%s: %s lacks a severity, a summary, a description or a link", alerts, name)
		} else if !slices.Contains(anchors(read(t, "../docs/"+found[1])), found[2]) {
			t.Errorf("%s leads to %s, which has no heading %s", name, found[1], found[2])
		}
		if !strings.Contains(read(t, alertTests), "\n        alertname: "+name+"\n        exp_alerts:") {
			t.Errorf("%s has no test in which %s fires", alertTests, name)
		}
	}
}

// anchors are the names by which links lead to the headings of a page.
func anchors(page string) (all []string) {
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		kept := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		all = append(all, strings.ReplaceAll(kept, " ", "-"))
	}
	return all
}

// What is 0 at the start of a test must be so by the Collector's doing.
func TestTheTestsOfAlertsBeginAsTheCollectorDoes(t *testing.T) {
	c := promlock.New()
	c.Observe(background, first["a refusal"])
	c.Observe(background, firstLoad)
	shown := scrape(t, c)
	of := `job="\w+", instance="\w+"(?:, server="[\w:]+"|, form="(\w+)", name="\w+"(.*))?`
	series := regexp.MustCompile(`series: '(latchkey_\w+)\{`+of+`\}'\n\s+values: '(?:_x\d+ )?(0?)`).
		FindAllStringSubmatch(read(t, alertTests), -1)
	if n := strings.Count(read(t, alertTests), "series: 'latchkey_"); len(series) != n || n < 20 {
		t.Fatalf("%d series are read, of %d", len(series), n)
	}
	for _, s := range series {
		want := s[1] + `{form="exclusive",name="orders"` + strings.NewReplacer(", ", ",", `.0"`, `"`).Replace(s[3]) + "} 0" // Prometheus 3 writes le="60.0"
		if s[2] == "" {
			want = s[1] + " 0"
		}
		if strings.HasPrefix(s[1], "latchkey_redis_") {
			want = s[1] + `{server="redis:6379"} 0`
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
	dir := t.TempDir()
	annotations := regexp.MustCompile(`(?m)^        annotations:\n(?:          .*\n)+`) // of which promtool would have all repeated
	for name, text := range map[string]string{
		"alerts.yml":      annotations.ReplaceAllString(read(t, alerts), ""),
		"alerts_test.yml": read(t, alertTests),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", alerts}, {"test", "rules", filepath.Join(dir, "alerts_test.yml")}} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}
