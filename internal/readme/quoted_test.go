package readme

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// omission is a line of a quotation in place of what it leaves out.
const omission = "// …"

var source = regexp.MustCompile(`^// (\S+/\S+\.go)\n`)

func TestQuotationsAreTrue(t *testing.T) {
	seen := 0
	for name, text := range readPages(t) {
		for _, b := range goBlocks(name, text) {
			if b.quotes() == "" {
				continue
			}
			seen++
			if err := b.compareWithSource(os.ReadFile); err != nil {
				t.Error(err)
			}
		}
	}
	if seen == 0 {
		t.Error("no quotation was found")
	}
}

// Without this the test above could pass because it sees nothing.
func TestFalseQuotationsAreSeen(t *testing.T) {
	const file = "package p\n\nfunc f() {\n\tg()\n}\n\nfunc g() {\n\tf()\n}\n"
	read := func(name string) ([]byte, error) {
		if name != filepath.Join(root, "other", "p.go") {
			return nil, os.ErrNotExist
		}
		return []byte(file), nil
	}
	for name, c := range map[string]struct{ code, want string }{
		"true":         {"// other/p.go\nfunc f() {\n\tg()\n}\n", ""},
		"left out":     {"// other/p.go\nfunc f() {\n// …\n}\n\nfunc g() {\n", ""},
		"no such file": {"// other/q.go\nfunc f() {\n", "page.md:7: cannot be read"},
		"changed":      {"// other/p.go\nfunc f() {\n\tgg()\n}\n", "page.md:8: other/p.go has no such lines"},
		"part of line": {"// other/p.go\nfunc f()\n", "page.md:8: other/p.go has no such lines"},
		"no order":     {"// other/p.go\nfunc g() {\n// …\nfunc f() {\n", "page.md:10: other/p.go has no such lines"},
		"silent":       {"// other/p.go\nfunc f() {\n}\n", "page.md:8: other/p.go has no such lines"},
		"empty":        {"// other/p.go\n", "page.md:8: quotes nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			err := block{page: "page.md", line: 7, code: c.code}.compareWithSource(read)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)):
				t.Errorf("error is %v, want one that begins with %q", err, c.want)
			}
		})
	}
}

// quotes returns the file that a block quotes, "" when the block is compiled here: the
// file is in a module of its own, whose packages are not there to compile with.
func (b block) quotes() string {
	m := source.FindStringSubmatch(b.code)
	if m == nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(path.Dir(m[1])), "go.mod")); err != nil {
		return ""
	}
	return m[1]
}

// compareWithSource says whether the lines of a quotation are in its file, one after
// the other but for what an omission stands for.
func (b block) compareWithSource(read func(name string) ([]byte, error)) error {
	m := source.FindStringSubmatch(b.code)
	file := m[1]
	text, err := read(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return fmt.Errorf("%s:%d: cannot be read: %w", b.page, b.line, err)
	}
	rest := strings.Split(string(text), "\n")
	lines := strings.Split(strings.TrimRight(strings.TrimPrefix(b.code, m[0]), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return fmt.Errorf("%s:%d: quotes nothing", b.page, b.line+1)
	}
	for at := 0; at < len(lines); {
		end := at
		for end < len(lines) && strings.TrimSpace(lines[end]) != omission {
			end++
		}
		found := find(rest, lines[at:end])
		if found < 0 {
			return fmt.Errorf("%s:%d: %s has no such lines, or not here:\n%s", b.page, b.line+1+at, file, strings.Join(lines[at:end], "\n"))
		}
		rest = rest[found+end-at:]
		at = end + 1
	}
	return nil
}

// find returns where part begins in lines, -1 if nowhere.
func find(lines, part []string) int {
	for i := 0; i+len(part) <= len(lines); i++ {
		if slices.Equal(lines[i:i+len(part)], part) {
			return i
		}
	}
	return -1
}
