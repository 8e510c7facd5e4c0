package architecture

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	goLine      = regexp.MustCompile(`(?m)^go (\S+)$`)
	moduleLine  = regexp.MustCompile(`(?m)^module (\S+)$`)
	ownRequired = regexp.MustCompile(`(?m)^(?:require )?\t?` + regexp.QuoteMeta(module) + ` (v\S+)$`)
	released    = regexp.MustCompile(`(?m)^## (\d\S+)`)
)

// newerGo are adapters whose framework asks for a newer Go than core does.
var newerGo = map[string]string{"adapters/echo5lock": "1.25.0", "adapters/fiberlock": "1.25.0"}

// onGuard are adapters that stand on the guard, as those of this module do: their page says that both are updated together.
var onGuard = []string{"adapters/echo5lock"}

// An adapter is released together with what it stands on, and does not reach for what is internal there: the two modules
// may be of different versions in a program.
func TestModulesOfAdapters(t *testing.T) {
	root := filepath.Join("..", "..")
	own, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	changes, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(root, "docs", "adapters.md"))
	if err != nil {
		t.Fatal(err)
	}
	goVersion, version := goLine.FindStringSubmatch(string(own))[1], "v"+released.FindStringSubmatch(string(changes))[1]
	names, err := filepath.Glob(filepath.Join(root, "adapters", "*", "go.mod"))
	if err != nil || len(names) == 0 {
		t.Fatalf("the modules were not found: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		folder := path.Join("adapters", filepath.Base(filepath.Dir(name)))
		for _, wrong := range (moduleRules{cmp.Or(newerGo[folder], goVersion), version}).faults(folder, string(text)) {
			t.Error(wrong)
		}
		if !strings.Contains(string(table), "](../"+folder+")") {
			t.Errorf("docs/adapters.md does not link to %s", folder)
		}
		imports, err := readImports(filepath.Dir(name))
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range imports["."] {
			if strings.HasPrefix(imported, module+"/") && slices.Contains(strings.Split(imported, "/"), "internal") && !slices.Contains(onGuard, folder) {
				t.Errorf("%s must not import %s: it is a module of its own", folder, imported)
			}
		}
	}
}

// moduleRules are what the go.mod of every adapter says.
type moduleRules struct{ goVersion, version string }

func (r moduleRules) faults(folder, text string) (faults []string) {
	for what, c := range map[string]struct {
		line *regexp.Regexp
		want string
	}{
		"is the module": {moduleLine, module + "/" + folder},
		"has the Go":    {goLine, r.goVersion},
		"requires of latchkey, in place of the last release,": {ownRequired, r.version},
	} {
		if got := c.line.FindStringSubmatch(text); got == nil || got[1] != c.want {
			faults = append(faults, fmt.Sprintf("%s/go.mod %s %q, want %s", folder, what, got, c.want))
		}
	}
	if !strings.Contains(text, "\nreplace "+module+" => ../..\n") {
		faults = append(faults, folder+"/go.mod does not replace latchkey by what is beside it")
	}
	return faults
}

// Without this the test above could pass because it sees nothing.
func TestFaultsOfModulesAreSeen(t *testing.T) {
	good := "module " + module + "/adapters/x\n\ngo 1.25.0\n\nreplace " + module + " => ../..\n\nrequire (\n\t" + module + " v0.1.0\n)\n"
	rules := moduleRules{goVersion: "1.25.0", version: "v0.1.0"}
	if faults := rules.faults("adapters/x", good); len(faults) > 0 {
		t.Error(faults)
	}
	for before, after := range map[string]string{"adapters/x": "adapters/y", "1.25.0": "1.26.0", "v0.1.0": "v0.0.0", "../..": "../../.."} {
		if faults := rules.faults("adapters/x", strings.Replace(good, before, after, 1)); len(faults) != 1 {
			t.Errorf("%s in place of %s: %q", after, before, faults)
		}
	}
}
