package promlock_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/latchkey-go/latchkey/promlock"
)

// metricNames are those that a Collector has.
func metricNames(t *testing.T) []string {
	t.Helper()
	descriptions := make(chan *prometheus.Desc, 100)
	promlock.New().Describe(descriptions)
	close(descriptions)
	names := map[string]bool{}
	for d := range descriptions {
		names[regexp.MustCompile(`fqName: "([^"]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// ofTheProcess are metrics that have no name of a lock.
var ofTheProcess = []string{"latchkey_build_info", "latchkey_missed_grants_total", "latchkey_pending_compensations", "latchkey_unheard_total"}

var (
	metric    = regexp.MustCompile(`\blatchkey_[a-z_]+`)
	ofASeries = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// mentioned returns the metrics in a text.
func mentioned(text string) []string {
	names := map[string]bool{}
	for _, name := range metric.FindAllString(text, -1) {
		names[ofASeries.ReplaceAllString(name, "")] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPagesKnowExactlyTheMetricsThereAre(t *testing.T) {
	names := metricNames(t)
	if len(names) < 10 {
		t.Fatalf("only %d metrics: %q", len(names), names)
	}
	for _, page := range []string{"doc.go", "../docs/observability.md", "../docs/grafana.json"} {
		names := names
		if page == "../docs/grafana.json" { // shows locks by name
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(ofTheProcess, name) })
		}
		if got := mentioned(read(t, page)); !slices.Equal(got, names) {
			t.Errorf("%s mentions\n%q, the Collector has\n%q", page, got, names)
		}
	}
}

// A label that a query names and no metric has is an empty panel.
func TestTheDashboardIsWhole(t *testing.T) {
	var dashboard struct {
		UID, Title    string
		SchemaVersion int
		Templating    struct {
			List []struct{ Name string }
		}
		Panels []struct {
			ID          int
			Type, Title string
			GridPos     struct{ X, Y, W, H int }
			Datasource  struct{ UID string }
			Targets     []struct {
				RefID, Expr string
				Datasource  struct{ UID string }
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, "../docs/grafana.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, v := range dashboard.Templating.List {
		variables = append(variables, v.Name)
	}
	if dashboard.UID == "" || dashboard.Title == "" || dashboard.SchemaVersion == 0 || !slices.Equal(variables, []string{"datasource", "name"}) {
		t.Errorf("dashboard %q %q, variables %q", dashboard.UID, dashboard.Title, variables)
	}
	labels := map[string]string{
		"latchkey_lock_calls_total":  "name,form,outcome,reason",
		"latchkey_lock_losses_total": "name,form,reason",
		"latchkey_refusals_total":    "name,form,reason,status",

		"latchkey_redis_answer_seconds": "server",
		"latchkey_redis_window":         "server",
		"latchkey_redis_overloaded":     "server",
		"latchkey_redis_shed_total":     "server",
	}
	selector := regexp.MustCompile(`(latchkey_[a-z_]+)\{([^}]*)\}`)
	label := regexp.MustCompile(`([a-z]+)=`)
	grouping := regexp.MustCompile(`by \(([a-z, ]+)\)`)
	legend := map[int]bool{}
	cells := map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if legend[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q has no title, or an id that another one has", p.Title)
		}
		legend[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies over %q, or outside", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %q has no query, or another data source", p.Title)
		}
		for _, target := range p.Targets {
			selectors := selector.FindAllStringSubmatch(target.Expr, -1)
			if len(selectors) != len(metric.FindAllString(target.Expr, -1)) || len(selectors) == 0 {
				t.Errorf("panel %q: not each metric has a selector: %s", p.Title, target.Expr)
			}
			for _, s := range selectors {
				known := labels[s[1]]
				if known == "" {
					known = "name,form,le"
				}
				used := label.FindAllStringSubmatch(strings.ReplaceAll(s[2], "=~", "="), -1)
				for _, g := range grouping.FindAllStringSubmatch(target.Expr, -1) {
					for _, by := range strings.Split(g[1], ", ") {
						used = append(used, []string{"", by})
					}
				}
				for _, u := range used {
					if !slices.Contains(strings.Split(known, ","), u[1]) {
						t.Errorf("panel %q: %s has no label %q", p.Title, s[1], u[1])
					}
				}
			}
		}
	}
}
