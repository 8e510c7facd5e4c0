package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// go doc shows no fields of an exported type that is declared as one of an internal package.
func TestNoExportedTypeIsHidden(t *testing.T) {
	seen := 0
	for _, folder := range slices.Sorted(maps.Keys(allowed)) {
		if slices.Contains(strings.Split(folder, "/"), "internal") {
			continue
		}
		names, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			seen++
			for _, hidden := range hiddenTypes(file) {
				t.Errorf("%s: %s is declared as an internal type, of which go doc shows no fields: declare the fields", folder, hidden)
			}
		}
	}
	if seen == 0 {
		t.Fatal("the files were not found")
	}
}

// Without this the test above could pass because it sees nothing.
func TestHiddenTypesAreSeen(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", `package p
import ("`+module+`/internal/guard"; other "`+module+`/core/internal/option"; "`+module+`/core")
type (
	A = guard.A
	B = []*other.B
	C = core.C
	D guard.D
	e = guard.E
)
type F struct { guard.F }
`, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := hiddenTypes(file); !slices.Equal(got, []string{"A", "B", "D"}) {
		t.Error(got)
	}
}

// hiddenTypes returns the exported types of a file that are declared as types of internal packages.
func hiddenTypes(file *ast.File) (names []string) {
	internal := map[string]bool{} // what the file calls such packages
	for _, spec := range file.Imports {
		path := strings.Split(strings.Trim(spec.Path.Value, `"`), "/")
		if !slices.Contains(path, "internal") {
			continue
		}
		name := path[len(path)-1]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		internal[name] = true
	}
	for _, d := range file.Decls {
		declaration, ok := d.(*ast.GenDecl)
		if !ok || declaration.Tok != token.TYPE {
			continue
		}
		for _, spec := range declaration.Specs {
			declared := spec.(*ast.TypeSpec)
			of := declared.Type
			for {
				if pointer, ok := of.(*ast.StarExpr); ok {
					of = pointer.X
				} else if list, ok := of.(*ast.ArrayType); ok {
					of = list.Elt
				} else {
					break
				}
			}
			if selector, ok := of.(*ast.SelectorExpr); ok && declared.Name.IsExported() && internal[selector.X.(*ast.Ident).Name] {
				names = append(names, declared.Name.Name)
			}
		}
	}
	return names
}
