package dashboard

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// watcher is a Prometheus that scrapes one program, with the rules of docs/alerts.yml.
type watcher struct {
	t    *testing.T
	api  prometheusAPI
	from time.Time
}

var listening = regexp.MustCompile(`Listening on.* address="?(127\.0\.0\.1:\d+)`)

func startPrometheus(t *testing.T, scraped string) *watcher {
	t.Helper()
	rules, err := filepath.Abs("../../docs/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: %[1]s, evaluation_interval: %[1]s}\n"+
		"rule_files: [%[2]q]\n"+
		"scrape_configs: [{job_name: shop, static_configs: [{targets: [%[3]q]}]}]\n",
		seconds(scrapeInterval), rules, scraped)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, listening, "prometheus", "--config.file="+config,
		"--storage.tsdb.path="+t.TempDir(), "--web.listen-address=127.0.0.1:0")
	return &watcher{t: t, api: prometheusAPI("http://" + p.addr), from: time.Now()}
}

// await returns when a query has a result.
func (w *watcher) await(what, expr string) {
	w.t.Helper()
	redistest.Await(w.t, patience, fmt.Sprintf("Prometheus to see %s: %s", what, expr), func() bool {
		result, err := w.api.query(w.t.Context(), expr)
		return err == nil && len(result) > 0 // it may still be reading its configuration
	})
}

// awaitScrapes returns when everything up to now has been scraped, twice: a rate needs
// two values.
func (w *watcher) awaitScrapes() {
	w.t.Helper()
	twice := time.Now().Add(scrapeInterval)
	w.await("the present", fmt.Sprintf("min(timestamp(latchkey_lock_held)) > %.3f", float64(twice.UnixMilli())/1000))
}

// curves runs a query as Grafana does for a panel that shows all from the beginning.
func (w *watcher) curves(target target, names string) []curve {
	w.t.Helper()
	expr := expand(target.Expr, names)
	result, err := w.api.queryRange(w.t.Context(), expr, w.from, scrapeInterval)
	if err != nil {
		w.t.Errorf("%s: %v", expr, err)
	}
	var all []curve
	for _, s := range result {
		all = append(all, newCurve(target.LegendFormat, s))
	}
	return all
}
