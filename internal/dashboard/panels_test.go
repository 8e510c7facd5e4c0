package dashboard

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// panel is what is asked of docs/grafana.json here.
type panel struct {
	Type, Title string
	Targets     []target
}

type target struct{ Expr, LegendFormat string }

func readPanels(t *testing.T) []panel {
	t.Helper()
	text, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	var panels []panel
	for _, p := range dashboard.Panels {
		if p.Type != "row" {
			panels = append(panels, p)
		}
	}
	return panels
}

// scrapeInterval is short, so that all is over soon. Grafana makes $__rate_interval
// four times that, where a pixel of the graph is no longer than a scrape.
const scrapeInterval = time.Second

// expand puts in what Grafana does for its variables, when the last five minutes of
// some locks are looked at.
func expand(expr, names string) string {
	return strings.NewReplacer(
		"$__rate_interval", seconds(4*scrapeInterval),
		"$__range", "300s",
		"$name", names,
	).Replace(expr)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0fs", d.Seconds()) }

func TestAllVariablesOfTheDashboardAreKnown(t *testing.T) {
	panels := readPanels(t)
	if len(panels) < 5 {
		t.Fatalf("only %d panels", len(panels))
	}
	for _, p := range panels {
		for _, target := range p.Targets {
			if expr := expand(target.Expr, ".*"); strings.Contains(expr, "$") {
				t.Errorf("%s: %s", p.Title, expr)
			}
		}
	}
}
