package readme

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testDeclared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	testNamed    = regexp.MustCompile("`(Test\\w+)(…?)`(?:\\]\\(([^)]*)\\))?")
	invariant    = regexp.MustCompile(`^TestInvariant([0-9]+)`)
)

// A promise whose test has another name, or is in another file by now, is shown by nothing.
func TestTestsThatPagesNameExist(t *testing.T) {
	tests, named := testFunctions(t), 0
	for page, text := range readPages(t) {
		for _, m := range testNamed.FindAllStringSubmatch(text, -1) {
			named++
			i := slices.IndexFunc(tests, func(f testFunction) bool {
				return f.name == m[1] || m[2] != "" && strings.HasPrefix(f.name, m[1])
			})
			if i < 0 {
				t.Errorf("%s: there is no %s", page, m[1])
				continue
			}
			linked := path.Join(path.Dir(page), m[3])
			if m[3] != "" && !slices.Contains(tests, testFunction{tests[i].name, linked}) {
				t.Errorf("%s: %s is not in %s, but in %s", page, m[1], linked, tests[i].file)
			}
		}
	}
	if named < 80 {
		t.Errorf("pages name %d tests; is the test looking in the right place?", named)
	}
}

// Whoever reads a test called TestInvariant7… finds out what number 7 is.
func TestInvariantsAreListed(t *testing.T) {
	_, list, found := strings.Cut(readPages(t)["docs/guarantees.md"], "\n## Invariants\n")
	list, _, _ = strings.Cut(list, "\n## ")
	named := map[string]string{}
	for _, f := range testFunctions(t) {
		if m := invariant.FindStringSubmatch(f.name); m != nil {
			named[m[1]] = f.name
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

type testFunction struct{ name, file string }

func testFunctions(t *testing.T) (tests []testFunction) {
	t.Helper()
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		file, err = filepath.Rel(root, file)
		for _, m := range testDeclared.FindAllStringSubmatch(string(text), -1) {
			tests = append(tests, testFunction{m[1], filepath.ToSlash(file)})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
