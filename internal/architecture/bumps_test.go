package architecture

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// lastYear is what the go.mod of a service required in November 2025, each in the newest version of that time.
var lastYear = map[string]string{
	gin:        "v1.11.0",
	goRedis:    "v9.16.0",
	miniredis:  "v2.35.0",
	googleUUID: "v1.6.0",
	asynq:      "v0.25.1",
	echo4:      "v4.13.4",
	prometheus: "v1.23.2",
	otel:       "v1.38.0",
}

// byGoRedis are modules that go-redis did not require yet.
var byGoRedis = []string{"go.uber.org/atomic", "golang.org/x/sys"}

// A user takes latchkey into a service of a year ago: the go.mod has the same Go and the same versions afterwards, but for
// go-redis and miniredis: older ones lack NoRetry, or have a data race in AddHook; or they lack ClockTTL and Dial.
func TestWhatUsersAreBumpedTo(t *testing.T) {
	for _, user := range []struct {
		name     string
		imports  []string // of the service
		latchkey []string // packages
		changed  []string // beside go-redis and miniredis
	}{
		{"core", []string{goRedis, googleUUID, miniredis}, []string{"core"}, nil},
		{"ginlock", []string{goRedis, gin, miniredis}, []string{"core", "ginlock"}, []string{googleUUID, httpsnoop, concurrent}},
		{"all", []string{goRedis, googleUUID, miniredis, gin, asynq, echo4, prometheus + "/prometheus", otel, otel + "/metric", otel + "/trace"},
			[]string{"core", "ginlock", "echolock", "httplock", "asynqlock", "promlock", "otellock", "locktest"}, []string{httpsnoop, gomponents}},
	} {
		t.Run(user.name, func(t *testing.T) {
			before := tidied(t, user.imports)
			for _, name := range user.latchkey {
				user.imports = append(user.imports, module+"/"+name)
			}
			after := tidied(t, user.imports)
			t.Logf("go.sum: %d modules, %.1f KiB; before %d, %.1f KiB", after.summed, after.kib, before.summed, before.kib)
			for _, path := range slices.Sorted(maps.Keys(after.versions)) {
				old, new := before.versions[path], after.versions[path]
				if old == new || path == module {
					continue
				}
				t.Logf("%s %s -> %s", path, old, new)
				isAdded := old == "" && slices.Contains(byGoRedis, path)
				if !isAdded && !slices.Contains(append(user.changed, goRedis, miniredis), path) {
					t.Errorf("%s: in go.mod %q becomes %q", path, old, new)
				}
			}
		})
	}
}

// concurrent is older in gin 1.11 than it was in gin 1.9, by nine days.
const concurrent = "github.com/modern-go/concurrent"

// modules are what go.mod and go.sum have of a program.
type modules struct {
	versions map[string]string // "go" too
	summed   int               // in go.sum
	kib      float64           // of go.sum
}

var required = regexp.MustCompile(`(?m)^(?:require )?\t?(\S+) (v?\d\S+)(?: // indirect)?$`)

// tidied returns what go.mod and go.sum of a service of a year ago are after "go mod tidy".
func tidied(t *testing.T, imports []string) modules {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	gomod, program := fmt.Sprintf("module service\n\ngo 1.24.0\n\nreplace %s => %s\n\nrequire (\n", module, root), "package main\n\nimport (\n"
	for _, path := range imports {
		program += fmt.Sprintf("\t_ %q\n", path)
	}
	for path, version := range lastYear {
		if strings.Contains(program, path) {
			gomod += fmt.Sprintf("\t%s %s\n", path, version)
		}
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"go.mod": gomod + ")\n", "main.go": program + ")\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "mod", "tidy")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "" && !strings.Contains(string(out), "does not contain package") {
			t.Skipf("modules of a year ago cannot be had here: %s", out)
		}
		t.Fatalf("%v: %s", err, out)
	}
	text, sum := read(t, filepath.Join(folder, "go.mod")), read(t, filepath.Join(folder, "go.sum"))
	m := modules{versions: map[string]string{}, kib: float64(len(sum)) / 1024}
	for _, found := range required.FindAllStringSubmatch(text, -1) {
		m.versions[found[1]] = found[2]
	}
	summed := map[string]bool{}
	for line := range strings.Lines(sum) {
		summed[strings.Fields(line)[0]] = true
	}
	m.summed = len(summed)
	return m
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
