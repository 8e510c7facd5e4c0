// Package architecture holds no code, only the test that keeps the packages of
// the module apart.
package architecture

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/latchkey-go/latchkey"

// Modules that packages of ours import.
const (
	asynq      = "github.com/hibiken/asynq"
	echo4      = "github.com/labstack/echo/v4"
	gin        = "github.com/gin-gonic/gin"
	httpsnoop  = "github.com/felixge/httpsnoop"
	miniredis  = "github.com/alicebob/miniredis/v2"
	gomponents = "maragu.dev/gomponents"
	goRedis    = "github.com/redis/go-redis/v9"
	googleUUID = "github.com/google/uuid"
	otel       = "go.opentelemetry.io/otel"
	porcupine  = "github.com/anishathalye/porcupine"
	prometheus = "github.com/prometheus/client_golang"
)

// allowed says for every package what it may import beside the standard
// library: packages of this module by their folder, others by their module.
// Nothing is inherited: what a package uses stands in its own row.
var allowed = map[string][]string{
	"core": {"core/internal/acquire", "core/internal/asjson", "core/internal/byurl", "core/internal/conn", "core/internal/lease", "core/internal/life", "core/internal/option", "core/internal/schedule", "core/internal/store", "internal/limitedlog", goRedis},

	// For authors of adapters; core knows nothing of it.
	"core/adapter": {"core", "core/internal/option"},

	// The rooms of core. How commands travel knows nothing of locks; who waits, what is due when,
	// and what becomes of a lease, know nothing of Redis.
	"core/internal/acquire":   {"core/internal/conn", "core/internal/lease", "core/internal/life", "core/internal/notify", "core/internal/option", "core/internal/schedule", "core/internal/store", "core/internal/waitqueue"},
	"core/internal/asjson":    {},
	"core/internal/byurl":     {goRedis},
	"core/internal/conn":      {goRedis, googleUUID},
	"core/internal/lease":     {"core/internal/conn", "core/internal/life", "core/internal/option", "core/internal/schedule", "core/internal/store", "internal/limitedlog"},
	"core/internal/life":      {"core/internal/schedule"}, // its Time
	"core/internal/notify":    {"core/internal/conn", goRedis},
	"core/internal/option":    {"core/internal/store"},
	"core/internal/schedule":  {},
	"core/internal/store":     {"core/internal/conn", "internal/script", goRedis},
	"core/internal/waitqueue": {},
	"internal/script":         {}, // here, so that tests elsewhere can read the scripts as well

	"internal/contention": {"core", "core/adapter", "internal/limitedlog"}, // here, because guards, jobs, the lock page and the command line say the same
	"internal/limitedlog": {},                                              // here, because core and the guard have no other room in common

	"keyfunc":        {googleUUID},
	"internal/guard": {"core", "core/adapter", "internal/contention", "internal/limitedlog", "keyfunc", httpsnoop}, // to see the status, and keep Flusher and the like

	// Adapters. None of them imports another one: whoever uses gin does not
	// compile echo, and what two of them need stands in the guard.
	"ginlock":   {"internal/guard", "core", "core/adapter", "keyfunc", gin},
	"echolock":  {"internal/guard", "core", "keyfunc", echo4},
	"httplock":  {"httplock/internal/lockpage", "internal/guard", "core", "keyfunc"},
	"asynqlock": {"core", "core/adapter", "internal/contention", "internal/limitedlog", "keyfunc", asynq, googleUUID},

	"httplock/internal/lockpage": {"internal/contention", "internal/guard", "internal/visible", "core", gomponents},

	// Observers. Whoever uses core compiles neither of what they report to.
	"promlock": {"core", prometheus},
	"otellock": {"core", otel},

	"cmd/latchkey": {"core", "core/adapter", "internal/contention", "internal/guard", "internal/visible", goRedis},

	// What must not be shown as it is, on a terminal and on the lock page.
	"internal/visible": {},

	// For tests: the user's, and our own.
	"locktest":              {"core", "internal/buffered", miniredis, goRedis},
	"internal/buffered":     {},
	"internal/checker":      {porcupine},
	"internal/redistest":    {"internal/script", goRedis},
	"internal/overhttp":     {"core", "keyfunc", "locktest"},
	"internal/dashboard":    {},
	"internal/faults":       {},
	"internal/redisson":     {},
	"internal/simulation":   {},
	"internal/readme":       {},
	"internal/architecture": {},
}

func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
	imports, err := readImports(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if len(imports["core"]) == 0 {
		t.Fatal("core imports nothing: the files were not found")
	}
	for _, v := range violations(imports) {
		t.Error(v)
	}
}

// Without this the test above could pass because it sees nothing.
func TestViolationsAreSeen(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"ginlock", module + "/echolock", "ginlock must not import echolock"},
		{"asynqlock", module + "/internal/guard", "asynqlock must not import internal/guard"},
		{"core", module + "/keyfunc", "core must not import keyfunc"},
		{"core", module + "/core/adapter", "core must not import core/adapter"},
		{"core", gin, "core must not import " + gin},
		{"core", otel + "/trace", "core must not import " + otel},
		{"core", prometheus + "/prometheus", "core must not import " + prometheus},
		{"internal/guard", module + "/promlock", "internal/guard must not import promlock"},
		{"otellock", prometheus, "otellock must not import " + prometheus},
		{"keyfunc", goRedis, "keyfunc must not import " + goRedis},
		{"examples/x", module + "/internal/guard", "examples/x must not import internal/guard"},
		{"newlock", "net/http", `package newlock is not in the table`},
		{"internal/new", "net/http", `package internal/new is not in the table`},
		{"core/internal/conn", module + "/core/internal/store", "core/internal/conn must not import core/internal/store"},
		{"core/internal/store", module + "/core/internal/schedule", "core/internal/store must not import core/internal/schedule"},
		{"core/internal/waitqueue", goRedis, "core/internal/waitqueue must not import " + goRedis},
		{"core", "net/http", ""},
		{"core", goRedis, ""},
		{"core", goRedis + "/maintnotifications", ""},
		{"core", goRedis + "extra", "core must not import " + goRedis + "extra"},
		{"ginlock", module + "/core", ""},
		{"examples/x", module + "/ginlock", ""},
		{"examples/x", gin, ""},
	} {
		got := violations(map[string][]string{c.from: {c.to}})
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s imports %s: %q", c.from, c.to, got)
		case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
			t.Errorf("%s imports %s: %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

// violations holds the imports of packages against the table.
func violations(imports map[string][]string) []string {
	var out []string
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		rows, known := allowed[from]
		example := strings.HasPrefix(from, "examples/")
		if !known && !example {
			out = append(out, fmt.Sprintf("package %s is not in the table: "+
				"add it to allowed in internal/architecture", from))
			continue
		}
		for _, to := range slices.Compact(slices.Sorted(slices.Values(imports[from]))) {
			if isStandard(to) {
				continue
			}
			own, ours := strings.CutPrefix(to, module+"/")
			switch {
			case ours && example:
				if strings.HasPrefix(own, "internal/") {
					out = append(out, fmt.Sprintf("%s must not import %s: its readers cannot", from, own))
				}
			case ours && !slices.Contains(rows, own):
				out = append(out, fmt.Sprintf("%s must not import %s", from, own))
			case !ours && !example && !slices.ContainsFunc(rows, func(m string) bool { return to == m || strings.HasPrefix(to, m+"/") }):
				out = append(out, fmt.Sprintf("%s must not import %s", from, to))
			}
		}
	}
	return out
}

func isStandard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

// readImports returns, by folder, what the files of each package import, those
// for other systems too; test files apart. It reads the files rather than ask
// "go list", so that go test knows what its cached result depends on.
func readImports(root string) (map[string][]string, error) {
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			nested, _ := filepath.Glob(filepath.Join(file, "go.mod")) // benchmarks: a module of its own
			if file != root && (name[0] == '.' || name[0] == '_' || name == "testdata" || len(nested) > 0) {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		folder, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		folder = filepath.ToSlash(folder)
		imports := out[folder]
		if !strings.HasSuffix(name, "_test.go") {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				return err
			}
			for _, spec := range parsed.Imports {
				p, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return err
				}
				imports = append(imports, p)
			}
		}
		out[folder] = imports
		return nil
	})
	return out, err
}
