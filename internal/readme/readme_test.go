package readme

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	// The pages are about these: with the imports go test does not take a result
	// from its cache when one of them has changed.
	_ "github.com/latchkey-go/latchkey/asynqlock"
	_ "github.com/latchkey-go/latchkey/core"
	_ "github.com/latchkey-go/latchkey/echolock"
	_ "github.com/latchkey-go/latchkey/ginlock"
	_ "github.com/latchkey-go/latchkey/httplock"
	_ "github.com/latchkey-go/latchkey/keyfunc"
	_ "github.com/latchkey-go/latchkey/locktest"
	_ "github.com/latchkey-go/latchkey/otellock"
	_ "github.com/latchkey-go/latchkey/promlock"
)

var root = filepath.Join("..", "..")

func TestGoBlocksCompile(t *testing.T) {
	var blocks []block
	for name, text := range readPages(t) {
		found := goBlocks(name, text)
		for _, b := range found {
			if b.quotes() == "" {
				blocks = append(blocks, b)
			}
		}
		if name == "README.md" && len(found) == 0 {
			t.Error("README.md: no block of Go was found")
		}
	}
	for _, err := range compile(t, blocks) {
		t.Error(err)
	}
}

// Without this the test above could pass because it sees nothing.
func TestWrongBlocksAreSeen(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"unknown function":       {"# Page\n\n```go\n_ = ctx\n_ = core.NoSuchThing()\n```\n", "page.md:5:10: undefined: core.NoSuchThing"},
		"wrong type":             {"```go\nlocker.Lock(ctx, 42)\n```\n", "page.md:2:18: cannot use 42"},
		"unknown name":           {"```go\nnobody.Lock()\n```\n", "page.md:2:1: undefined: nobody"},
		"no Go":                  {"```go\nfunc func\n```\n", "page.md:2:"},
		"unused inside":          {"```go\nfunc() { unused := 1 }()\n```\n", "page.md:2:10: declared and not used: unused"},
		"unused import":          {"```go\npackage p\n\nimport \"context\"\n```\n", `page.md:4:8: "context" imported and not used`},
		"unknown import":         {"```go\npackage p\n\nimport _ \"example.com/nobody\"\n```\n", "page.md:4:10: could not import"},
		"literal":                {"```go\nasynq.Config{NoSuchField: 1}\n```\n", "page.md:2:14: unknown field NoSuchField"},
		"declaration":            {"```go\nfunc f() int { return \"\" }\n```\n", "page.md:2:23: cannot use"},
		"diff":                   {"```diff\n-core.Gone()\n+core.NoSuchThing()\n```\n", "page.md:3:6: undefined: core.NoSuchThing"},
		"fence that never ends":  {"```go\n_ = ctx\n", "page.md:1: the block is not closed"},
		"longer fence, indented": {"  ````go\n\tundefinedHere()\n  ````\n", "page.md:2:2: undefined: undefinedHere"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := compile(t, goBlocks("page.md", c.page))
			if len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), c.want) {
				t.Errorf("errors are %v, want one that begins with %q", errs, c.want)
			}
		})
	}
	right := "```go\nx, err := 1, error(nil)\nreturn ctx.Err()\n```\n" +
		"```go\nasynq.Config{Concurrency: 1}\n```\n" +
		"```go\ntype T struct{}\n\nfunc (T) F() { _ = locker }\n```\n" +
		"```text\nno Go\n```\n" +
		"```diff\n-gone()\n _ = db\n+_ = ctx\n```\n"
	if errs := compile(t, goBlocks("page.md", right)); len(errs) != 0 {
		t.Errorf("errors in right blocks: %v", errs)
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	pages := readPages(t)
	seen := 0
	for name, text := range pages {
		links, errs := follow(name, text, pages)
		seen += links
		for _, err := range errs {
			t.Error(err)
		}
	}
	if seen == 0 {
		t.Error("no link was found")
	}
}

func TestBrokenLinksAreSeen(t *testing.T) {
	const text = "# A *page*, `x` & more\n\n## Twice\n\n## Twice\n\n" +
		"[ok](#a-page-x--more) [ok](#twice-1) [ok](../README.md) [ok](https://example.com/x#y)\n" +
		"[two\nlines](gone.md) `[code](gone.md)`\n[up](../../go.mod) [anchor](#twice-2) [other](b.md#gone)\n" +
		"```go\n[block](gone.md)\n```\n"
	pages := map[string]string{"docs/a.md": text, "docs/b.md": "# B\n", "README.md": "# R\n"}
	_, errs := follow("docs/a.md", text, pages)
	want := []string{
		"docs/a.md:9: there is no docs/gone.md",
		"docs/a.md:10: ../../go.mod leads out of the repository",
		`docs/a.md:10: there is no "twice-2" in docs/a.md`,
		`docs/a.md:10: there is no "gone" in docs/b.md`,
	}
	var got []string
	for _, err := range errs {
		got = append(got, err.Error())
	}
	if !slices.Equal(got, want) {
		t.Errorf("errors are\n%q, want\n%q", got, want)
	}
}

// readPages returns README.md and docs/*.md by their names.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.ToSlash(name)] = string(text)
	}
	return pages
}

// block is a piece of Go in a page.
type block struct {
	page string
	line int // of its first line
	code string
	err  error // it could not be read
}

var fence = regexp.MustCompile("^ *(```+) *([^` ]*)[^`]*$")

// fenced calls visit with each line of a page, and the language of the block that it
// is in: "" outside, "```" for the fences themselves. It returns the line of a fence
// that is not closed, or 0.
func fenced(text string, visit func(number int, line, language string)) (open int) {
	marks, language := "", ""
	for i, line := range strings.Split(text, "\n") {
		m := fence.FindStringSubmatch(line)
		switch {
		case marks == "" && m != nil:
			marks, language, open = m[1], m[2], i+1
			visit(i+1, line, "```")
		case marks == "":
			visit(i+1, line, "")
		case m != nil && m[2] == "" && len(m[1]) >= len(marks):
			marks, open = "", 0
			visit(i+1, line, "```")
		case language == "":
			visit(i+1, line, "text")
		default:
			visit(i+1, line, language)
		}
	}
	return open
}

func goBlocks(page, text string) []block {
	var blocks []block
	within := false
	open := fenced(text, func(number int, line, language string) {
		if language != "go" && language != "diff" {
			within = false
			return
		}
		if !within {
			within = true
			blocks = append(blocks, block{page: page, line: number})
		}
		if language == "diff" {
			switch {
			case strings.HasPrefix(line, "-"):
				line = ""
			case line != "":
				line = line[1:]
			}
		}
		blocks[len(blocks)-1].code += line + "\n"
	})
	if open > 0 {
		return []block{{page: page, err: fmt.Errorf("%s:%d: the block is not closed", page, open)}}
	}
	return blocks
}

// compile type-checks blocks, each as a package of its own, and returns what is wrong
// with them.
func compile(t *testing.T, blocks []block) []error {
	t.Helper()
	fset := token.NewFileSet()
	var errs []error
	var sets [][]*ast.File
	imports := map[string]bool{}
	for _, b := range blocks {
		files, err := b.parse(fset)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sets = append(sets, files)
		for _, f := range files {
			for _, spec := range f.Imports {
				if p, err := strconv.Unquote(spec.Path.Value); err == nil {
					imports[p] = true
				}
			}
		}
	}
	packages := newImporter(t, fset, slices.Sorted(maps.Keys(imports)))
	for _, files := range sets {
		config := types.Config{
			Importer: packages,
			Error: func(err error) {
				var e types.Error
				if errors.As(err, &e) && e.Soft && e.Fset.Position(e.Pos).Filename == prelude {
					return // an import that this block does not need
				}
				errs = append(errs, err)
			},
		}
		_, _ = config.Check("page", fset, files, nil) // Error has been told
	}
	return errs
}

// prelude is the name, in positions, of what the test adds to a block.
const prelude = "prelude"

// parse returns the files of the package that b is made into.
func (b block) parse(fset *token.FileSet) ([]*ast.File, error) {
	if b.err != nil {
		return nil, b.err
	}
	here := fmt.Sprintf("//line %s:%d:1\n", b.page, b.line)
	parse := func(source string) (*ast.File, error) {
		return parser.ParseFile(fset, "block.go", source, parser.SkipObjectResolution|parser.ParseComments)
	}
	if strings.HasPrefix(strings.TrimSpace(b.code), "package ") {
		f, err := parse(here + b.code)
		return []*ast.File{f}, err
	}
	const ours = "//line " + prelude + ":1:1\n"
	names, err := parse(ours + "package page\n" + namesFor(b.code))
	if err != nil {
		return nil, err
	}
	head := ours + "package page\n" + packages
	if e, err := parser.ParseExpr(b.code); err == nil {
		if _, ok := e.(*ast.CompositeLit); ok {
			f, err := parse(head + "var _ =\n" + here + b.code)
			return []*ast.File{names, f}, err
		}
	}
	if f, err := parse(head + here + b.code); err == nil {
		return []*ast.File{names, f}, nil
	}
	body := func(more string) (*ast.File, error) {
		return parse(head + "func _() error {\n" + here + b.code + ours + more + "return nil\n}\n")
	}
	f, err := body("")
	if err == nil {
		f, err = body(uses(f))
	}
	return []*ast.File{names, f}, err
}

// uses returns a use of each variable that the last function of f declares at its top
// level.
func uses(f *ast.File) string {
	var out strings.Builder
	use := func(e ast.Expr) {
		if name, ok := e.(*ast.Ident); ok && name.Name != "_" {
			fmt.Fprintf(&out, "_ = %s\n", name.Name)
		}
	}
	for _, statement := range f.Decls[len(f.Decls)-1].(*ast.FuncDecl).Body.List {
		switch s := statement.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				for _, e := range s.Lhs {
					use(e)
				}
			}
		case *ast.DeclStmt:
			for _, spec := range s.Decl.(*ast.GenDecl).Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						use(name)
					}
				}
			}
		}
	}
	return out.String()
}

// newImporter imports packages as the compiler has left them in its cache, which for
// the most part it has for this test already.
func newImporter(t *testing.T, fset *token.FileSet, imports []string) types.Importer {
	t.Helper()
	args := []string{"list", "-e", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	list := exec.Command("go", append(append(args, "--"), imports...)...)
	list.Dir = root
	var stderr strings.Builder
	list.Stderr = &stderr
	listed, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(listed)) {
		name, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		exports[name] = file
	}
	return importer.ForCompiler(fset, "gc", func(name string) (io.ReadCloser, error) {
		if exports[name] == "" {
			return nil, fmt.Errorf("package %s is not there\n%s", name, stderr.String())
		}
		return os.Open(exports[name])
	})
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	quoted  = regexp.MustCompile("`[^`\n]*`")
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *$`)
)

// follow counts the links of a page that lead into the repository, and returns those
// that do not.
func follow(name, text string, pages map[string]string) (links int, errs []error) {
	for number, line := range prose(text) {
		for _, m := range link.FindAllStringSubmatch(quoted.ReplaceAllString(line, ""), -1) {
			if strings.Contains(m[1], ":") {
				continue // another site
			}
			links++
			if problem := lead(name, m[1], pages); problem != "" {
				errs = append(errs, fmt.Errorf("%s:%d: %s", name, number+1, problem))
			}
		}
	}
	return links, errs
}

// lead says what is wrong with a link, "" if nothing.
func lead(from, to string, pages map[string]string) string {
	file, anchor, hasAnchor := strings.Cut(to, "#")
	target := path.Join(path.Dir(from), file)
	if file == "" {
		target = from
	}
	if !filepath.IsLocal(target) {
		return to + " leads out of the repository"
	}
	text, isPage := pages[target]
	if !isPage {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
			return "there is no " + target
		}
	}
	if isPage && hasAnchor && !slices.Contains(anchors(text), anchor) {
		return fmt.Sprintf("there is no %q in %s", anchor, target)
	}
	return ""
}

// anchors returns how the headings of a page are linked to.
func anchors(text string) []string {
	var out []string
	count := map[string]int{}
	for _, line := range prose(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, link.ReplaceAllString(m[1], "]"))
		n := count[anchor]
		count[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		out = append(out, anchor)
	}
	return out
}

// prose returns the lines of a page, with those of its blocks empty.
func prose(text string) []string {
	var out []string
	fenced(text, func(_ int, line, language string) {
		if language != "" {
			line = ""
		}
		out = append(out, line)
	})
	return out
}
