package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A method that is called by a name which the linker cannot know has it keep every exported method
// of the program: a service with gin, pgx and the lock page was 13 MB larger. asynq and Prometheus do
// so on their own, so the program has neither.
func TestLinkerLeavesOutWhatIsNotUsed(t *testing.T) {
	if _, err := readImports(filepath.Join("..", "..")); err != nil { // so that a cached result depends on all files
		t.Fatal(err)
	}
	for _, module := range []string{"go.mod", "go.sum"} {
		if _, err := os.ReadFile(filepath.Join("..", "..", module)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "build", "-ldflags=-dumpdep", "-o", os.DevNull, "./examples/lockpage")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out[max(0, len(out)-1000):])
	}
	if !strings.Contains(string(out), "httplock/internal/lockpage.") {
		t.Fatal("the program is without the lock page")
	}
	for _, line := range regexp.MustCompile(`(?m)^\S+ -> \S+ <ReflectMethod>`).FindAllString(string(out), -1) {
		t.Error("the linker keeps every method: ", line)
	}
}

func TestNoPackageCallsWhatIsRefused(t *testing.T) {
	root := filepath.Join("..", "..")
	imports, err := readImports(root)
	if err != nil {
		t.Fatal(err)
	}
	for folder := range imports {
		if strings.HasPrefix(folder, "examples/") {
			continue
		}
		files, _ := filepath.Glob(filepath.Join(root, folder, "*.go"))
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range refusedCalls(t, filepath.ToSlash(filepath.Join(folder, filepath.Base(name))), source) {
				t.Error(v)
			}
		}
	}
}

func TestRefusedCallsAreSeen(t *testing.T) {
	for source, want := range map[string]string{
		`import "html/template"`: "html/template",
		`import "text/template"`: "text/template",
		`import "html"`:          "",
		`import dom "maragu.dev/gomponents"` + "\nvar x = dom.Raw(y)":      "Raw",
		`import dom "maragu.dev/gomponents"` + "\nvar x = dom.Rawf(y)":     "Rawf",
		`import "maragu.dev/gomponents"` + "\nvar x = gomponents.Raw":      "Raw",
		`import . "maragu.dev/gomponents"` + "\nvar x = Raw(y)":            gomponents,
		`import dom "maragu.dev/gomponents"` + "\nvar x = dom.NodeFunc(y)": "NodeFunc",
		`import dom "maragu.dev/gomponents"` + "\nvar x = dom.Text(y)":     "",
		`import "encoding/json"` + "\nvar x = json.Raw(y)":                 "",
		`var x = v.MethodByName(name)`:                                     "MethodByName",
		`var x = v.MethodByName("Routes")`:                                 "",
		`import "reflect"` + "\nvar x = v.MethodByName":                    "MethodByName",
	} {
		got := refusedCalls(t, "x.go", []byte("package x\n"+source))
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want+" ")) {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

// refusedCalls returns where a file uses what keeps unused methods in a program, or writes HTML as it is.
func refusedCalls(t *testing.T, name string, source []byte) (out []string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, 0)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(at ast.Node, what, why string) {
		out = append(out, fmt.Sprintf("%s: %s %s", set.Position(at.Pos()), what, why))
	}
	html := map[string]bool{} // the names of gomponents in the file
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case imported == "html/template" || imported == "text/template":
			refuse(spec, imported, "has the linker keep every method of a program")
		case imported == gomponents && spec.Name != nil && spec.Name.Name == ".":
			refuse(spec, imported, "needs a name, by which what writes text as it is can be seen")
		case imported == gomponents && spec.Name != nil:
			html[spec.Name.Name] = true
		case imported == gomponents:
			html[path.Base(imported)] = true
		}
	}
	constant := map[ast.Node]bool{} // methods that are called by a name which is written there
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) == 1 {
				_, constant[n.Fun] = n.Args[0].(*ast.BasicLit)
			}
		case *ast.SelectorExpr:
			from, _ := n.X.(*ast.Ident)
			switch {
			case n.Sel.Name == "MethodByName" && !constant[n]:
				refuse(n, n.Sel.Name, "of a name that is no literal has the linker keep every method of a program")
			case from != nil && html[from.Name] && (strings.HasPrefix(n.Sel.Name, "Raw") || n.Sel.Name == "NodeFunc"):
				refuse(n, n.Sel.Name, "writes text as it is: use Text or Attr, which escape it")
			}
		}
		return true
	})
	return out
}
