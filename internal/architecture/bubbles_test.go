package architecture

import (
	"go/ast"
	"go/token"
	"go/types"
	"path"
	"slices"
)

// files are those of a folder.
type files struct {
	set  *token.FileSet
	list []*ast.File
}

// sleep is a time.Sleep, or a <-time.After that nothing else can end.
type sleep struct {
	at       token.Position
	function string // or the variable at the top of the file
	inBubble bool
}

// scan finds out what is in bubbles only. Code is, when it is an argument of
// synctest.Test, or belongs to a name (a function, a parameter, a variable, a field) all of
// whose uses are. What is imported stays unknown.
type scan struct {
	types.Info
	used   map[types.Object]bool
	uses   map[types.Object][][]types.Object // of each name, and of each use what it belongs to
	sleeps []sleep
	owners [][]types.Object // of each sleep
}

// bubble stands for an argument of synctest.Test.
var bubble types.Object = types.NewLabel(token.NoPos, nil, "bubble")

func findSleeps(f files) []sleep {
	s := scan{
		Info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}},
		used: map[types.Object]bool{},
		uses: map[types.Object][][]types.Object{},
	}
	packages := map[string][]*ast.File{}
	for _, file := range f.list {
		packages[file.Name.Name] = append(packages[file.Name.Name], file)
	}
	config := types.Config{Importer: nothing{}, Error: func(error) {}} // an error is what is imported
	for name, list := range packages {
		_, _ = config.Check(name, f.set, list, &s.Info)
		for _, o := range s.Uses {
			s.used[origin(o)] = true
		}
		for _, file := range list {
			s.read(f.set, file)
		}
	}
	in := map[types.Object]bool{bubble: true}
	for o := range s.uses {
		in[o] = true
	}
	inBubble := func(owners []types.Object) bool {
		return slices.ContainsFunc(owners, func(o types.Object) bool { return in[o] })
	}
	for changed := true; changed; {
		changed = false
		for o, uses := range s.uses {
			for _, owners := range uses {
				if in[o] && !inBubble(owners) {
					in[o], changed = false, true
				}
			}
		}
	}
	for i := range s.sleeps {
		s.sleeps[i].inBubble = inBubble(s.owners[i])
	}
	return s.sleeps
}

// read notes the uses of names in a file, and its sleeps.
func (s *scan) read(set *token.FileSet, file *ast.File) {
	var path []ast.Node
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			path = path[:len(path)-1]
			return true
		}
		path = append(path, n)
		if id, ok := n.(*ast.Ident); ok && s.Uses[id] != nil && !isSet(path) {
			o := origin(s.Uses[id])
			s.uses[o] = append(s.uses[o], s.ownersOf(path))
		}
		if s.isSleep(path) {
			s.sleeps = append(s.sleeps, sleep{at: set.Position(n.Pos()), function: nameOf(path)})
			s.owners = append(s.owners, s.ownersOf(path))
		}
		return true
	})
}

// isSet reports whether a path ends in a name that gets a value there.
func isSet(path []ast.Node) bool {
	i := len(path) - 1
	child, parent := path[i], path[i-1]
	if selector, ok := parent.(*ast.SelectorExpr); ok && child == ast.Node(selector.Sel) {
		child, parent = parent, path[i-2]
	}
	switch p := parent.(type) {
	case *ast.KeyValueExpr:
		return child == ast.Node(p.Key)
	case *ast.AssignStmt:
		return slices.ContainsFunc(p.Lhs, func(e ast.Expr) bool { return ast.Node(e) == child })
	}
	return false
}

func (s *scan) isSleep(path []ast.Node) bool {
	switch n := path[len(path)-1].(type) {
	case *ast.SelectorExpr:
		return s.isImported(n, "time", "Sleep")
	case *ast.ExprStmt:
		if _, ok := path[len(path)-2].(*ast.CommClause); ok { // of a select
			return false
		}
		if receive, ok := n.X.(*ast.UnaryExpr); ok {
			call, ok := receive.X.(*ast.CallExpr)
			return ok && (s.isImported(call.Fun, "time", "After") || s.isImported(call.Fun, "time", "Tick"))
		}
	}
	return false
}

func (s *scan) isImported(e ast.Expr, pkg, name string) bool {
	selector, ok := e.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	id, ok := selector.X.(*ast.Ident)
	if !ok {
		return false
	}
	imported, ok := s.Uses[id].(*types.PkgName)
	return ok && imported.Imported().Path() == pkg
}

// ownersOf returns to which names the end of a path belongs.
func (s *scan) ownersOf(path []ast.Node) (owners []types.Object) {
	for i, parent := range path[:len(path)-1] {
		if o := s.owner(parent, path[i+1]); o != nil {
			owners = append(owners, origin(o))
		}
	}
	return owners
}

// owner returns the name to which a child of a node belongs, or nil.
func (s *scan) owner(parent, child ast.Node) types.Object {
	among := func(list []ast.Expr) int {
		return slices.IndexFunc(list, func(e ast.Expr) bool { return ast.Node(e) == child })
	}
	switch p := parent.(type) {
	case *ast.FuncDecl:
		f := s.Defs[p.Name]
		if p.Recv != nil && !s.used[f] { // others call it, by way of an interface
			return s.object(receiver(p))
		}
		return f
	case *ast.ValueSpec:
		if i := among(p.Values); i >= 0 && len(p.Values) == len(p.Names) {
			return s.Defs[p.Names[i]]
		}
	case *ast.AssignStmt:
		if i := among(p.Rhs); i >= 0 && len(p.Lhs) == len(p.Rhs) {
			return s.object(p.Lhs[i])
		}
	case *ast.RangeStmt:
		if child == ast.Node(p.X) && p.Value != nil {
			return s.object(p.Value)
		}
	case *ast.KeyValueExpr:
		if child == ast.Node(p.Value) {
			return s.object(p.Key)
		}
	case *ast.CompositeLit:
		if struc, ok := under(s.Types[p].Type).(*types.Struct); ok {
			if i := among(p.Elts); i >= 0 && i < struc.NumFields() {
				if _, keyed := child.(*ast.KeyValueExpr); !keyed {
					return struc.Field(i)
				}
			}
		}
	case *ast.CallExpr:
		i := among(p.Args)
		if i < 0 {
			return nil
		}
		if s.isImported(p.Fun, "testing/synctest", "Test") {
			return bubble
		}
		callee := s.object(p.Fun)
		if callee == nil {
			return nil
		}
		if f, ok := under(origin(callee).Type()).(*types.Signature); ok && f.Params().Len() > 0 {
			return f.Params().At(min(i, f.Params().Len()-1))
		}
	}
	return nil
}

func under(t types.Type) types.Type {
	if t == nil {
		return nil
	}
	return t.Underlying()
}

// object is what an identifier, or the end of a selector, stands for.
func (s *scan) object(e ast.Expr) types.Object {
	if selector, ok := e.(*ast.SelectorExpr); ok {
		e = selector.Sel
	}
	if id, ok := e.(*ast.Ident); ok {
		return s.ObjectOf(id)
	}
	return nil
}

// origin is what was written, where o is an instance of something generic.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}

// nameOf is the name at the top of the file, of a function or variable, to which a path
// leads.
func nameOf(nodes []ast.Node) string {
	for _, n := range nodes {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil {
				return n.Name.Name
			}
			return types.ExprString(receiver(n)) + "." + n.Name.Name
		case *ast.ValueSpec:
			return n.Names[0].Name
		}
	}
	return ""
}

// receiver is the type of which f is a method.
func receiver(f *ast.FuncDecl) ast.Expr {
	t := f.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	return t
}

// nothing is an importer that does not look.
type nothing struct{}

func (nothing) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}
