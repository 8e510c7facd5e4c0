package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// report is a whole run.
type report struct {
	Conditions string    `json:"conditions"`
	Verdicts   []verdict `json:"bars"`
	Rows       []rowJSON `json:"rows"`

	rows []measured
}

// rowJSON is a row as the JSON has it: all rounds, so that other statistics can
// be made of them.
type rowJSON struct {
	Name      string        `json:"name"`
	Title     string        `json:"title"`
	Libraries []libraryJSON `json:"libraries"`
}

type libraryJSON struct {
	Name        string             `json:"name"`
	Median      map[figure]float64 `json:"median"`
	RatioToBase float64            `json:"ratio_to_base,omitempty"` // of the first figure of the row
	Base        string             `json:"base,omitempty"`
	Rounds      []figures          `json:"rounds"`
}

func newReport(conditions string, rows []measured) report {
	r := report{Conditions: conditions, rows: rows}
	for _, m := range rows {
		r.Rows = append(r.Rows, m.json())
	}
	r.Verdicts = judge(r.byName(), bars())
	return r
}

func (r report) byName() results {
	byName := results{}
	for _, m := range r.rows {
		byName[m.name] = m
	}
	return byName
}

func (m measured) json() rowJSON {
	out := rowJSON{Name: m.name, Title: m.title}
	for _, name := range m.order {
		l := libraryJSON{Name: name, Median: map[figure]float64{}, Rounds: m.rounds[name]}
		for what := range headings {
			if v := m.median(name, what); !math.IsNaN(v) {
				l.Median[what] = round(v)
			}
		}
		if v := m.ratio(name, m.base, m.columns[0]); m.base != "" && !math.IsNaN(v) {
			l.Base, l.RatioToBase = m.base, round(v)
		}
		out.Libraries = append(out.Libraries, l)
	}
	return out
}

// load reads the JSON of an earlier run, to write the pages anew.
func load(file string) (report, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return report{}, err
	}
	var saved report
	if err := json.Unmarshal(text, &saved); err != nil {
		return report{}, fmt.Errorf("%s: %w", file, err)
	}
	var all []measured
	for _, row := range saved.Rows {
		chosen, err := selectRows([]string{row.Name})
		if err != nil {
			return report{}, err
		}
		m := measured{row: chosen[0], rounds: map[string][]figures{}}
		for _, l := range row.Libraries {
			m.order, m.rounds[l.Name] = append(m.order, l.Name), l.Rounds
		}
		all = append(all, m)
	}
	return newReport(saved.Conditions, all), nil
}

// save writes the pages, the JSON and the charts into a folder.
func (r report) save(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	err = firstError(
		os.WriteFile(filepath.Join(dir, "table.md"), []byte("# Results\n\n"+r.table()), 0o644),
		os.WriteFile(filepath.Join(dir, "bars.md"), []byte(r.barTable()), 0o644),
		os.WriteFile(filepath.Join(dir, "results.json"), append(text, '\n'), 0o644))
	if err != nil {
		return err
	}
	return r.charts(dir)
}

// conditions says on what a run was made.
func conditions(ctx context.Context, o observer, b *bench) (string, error) {
	info, err := o.client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, Redis %s, %s/%s, %d cores. %d rounds of %v. Libraries: %s.",
		runtime.Version(), info["Server"]["redis_version"], runtime.GOOS, runtime.GOARCH, runtime.NumCPU(),
		b.rounds, b.roundTime, versions()) + "\nMeasured on " + time.Now().UTC().Format(time.DateOnly) + ".", nil
}

// versions are those of the contestants, as they were built.
func versions() string {
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	var all []string
	for _, d := range build.Deps {
		for _, path := range []string{"redis/go-redis/v9", "bsm/redislock", "go-redsync/redsync/v4", "redis/rueidis", "hibiken/asynq/x", "gin-gonic/gin"} {
			if d.Path == "github.com/"+path {
				all = append(all, path+" "+d.Version)
			}
		}
	}
	return strings.Join(all, ", ")
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
