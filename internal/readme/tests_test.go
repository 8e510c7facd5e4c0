package readme

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamed    = regexp.MustCompile("`(Test\\w+)(…?)`")
	invariant    = regexp.MustCompile(`^TestInvariant([0-9]+)`)
)

// A promise whose test has another name by now is shown by nothing.
func TestTestsThatPagesNameExist(t *testing.T) {
	tests, named := testFunctions(t), 0
	for page, text := range readPages(t) {
		for _, m := range testNamed.FindAllStringSubmatch(text, -1) {
			named++
			exists := slices.ContainsFunc(tests, func(name string) bool {
				return name == m[1] || m[2] != "" && strings.HasPrefix(name, m[1])
			})
			if !exists {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
	if named < 100 {
		t.Errorf("pages name %d tests; is the test looking in the right place?", named)
	}
}

// Whoever reads a test called TestInvariant7… finds out what number 7 is.
func TestInvariantsAreListed(t *testing.T) {
	_, list, found := strings.Cut(readPages(t)["docs/guarantees.md"], "\n## Invariants\n")
	list, _, _ = strings.Cut(list, "\n## ")
	named := map[string]string{}
	for _, name := range testFunctions(t) {
		if m := invariant.FindStringSubmatch(name); m != nil {
			named[m[1]] = name
		}
	}
	for number, name := range named {
		if !strings.Contains(list, "\n"+number+". ") {
			t.Errorf("docs/guarantees.md does not list invariant %s of %s", number, name)
		}
	}
	if !found || len(named) < 5 {
		t.Errorf("tests name %d invariants; is the test looking in the right place?", len(named))
	}
}

func testFunctions(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range testFunction.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
