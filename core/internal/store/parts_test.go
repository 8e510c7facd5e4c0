package store_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"github.com/latchkey-go/latchkey/internal/redistest"
)

// part is a file of a script, read by itself. What it does not define is up to those that include it.
type part struct {
	header      string
	defines     []string // for what follows where it is included
	includes    []string
	reads, sets []string // what it does not define; also what it includes
}

var (
	including = regexp.MustCompile(`^( *)-- include (\w+)$`)
	declared  = regexp.MustCompile(`\bUses ([\w, ;.]+?)\.(?: Sets ([\w, ]+)\.)?$`)
	ofLua     = strings.Fields("redis string math tonumber tostring type pairs ipairs next unpack pcall select KEYS ARGV")
)

func readPart(t *testing.T, file string) *part {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, inHeader := &part{}, true
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if inHeader = inHeader && strings.HasPrefix(line, "--"); inHeader {
			p.header += strings.TrimPrefix(line, "--")
		}
		if m := including.FindStringSubmatch(line); m != nil {
			p.includes = append(p.includes, m[2])
		}
	}
	chunk, err := parse.Parse(strings.NewReader(string(text)), file)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range chunk {
		if local, ok := statement.(*ast.LocalAssignStmt); ok {
			p.defines = append(p.defines, local.Names...)
		}
	}
	p.reads, p.sets = globals(t, chunk)
	for _, name := range p.includes {
		inner := readPart(t, "scripts/parts/"+name+".lua")
		p.defines = append(p.defines, inner.defines...)
		p.reads, p.sets = append(p.reads, inner.reads...), append(p.sets, inner.sets...)
	}
	ofOthers := func(names []string) []string {
		slices.Sort(names)
		return slices.Compact(slices.DeleteFunc(names, func(name string) bool { return slices.Contains(p.defines, name) }))
	}
	p.reads, p.sets = ofOthers(p.reads), ofOthers(p.sets)
	return p
}

// globals are what a chunk reads and sets that is none of its own, nor of Lua.
func globals(t *testing.T, chunk []ast.Stmt) (reads, sets []string) {
	t.Helper()
	compiled, err := lua.Compile(chunk, "script")
	if err != nil {
		t.Fatal(err)
	}
	for functions := []*lua.FunctionProto{compiled}; len(functions) > 0; functions = functions[1:] {
		f := functions[0]
		functions = append(functions, f.FunctionPrototypes...)
		for _, code := range f.Code {
			operation, constant := int(code>>26), code&0x3ffff
			switch {
			case operation == lua.OP_SETGLOBAL:
				sets = append(sets, f.Constants[constant].String())
			case operation == lua.OP_GETGLOBAL && !slices.Contains(ofLua, f.Constants[constant].String()):
				reads = append(reads, f.Constants[constant].String())
			}
		}
	}
	return reads, sets
}

// A part is pasted into its caller's scope. The end of its header says of which variables and files it uses something, and which
// variables of others it sets: all of them, and no others.
func TestPartsSayWhatTheyUse(t *testing.T) {
	files, _ := filepath.Glob("scripts/parts/*.lua")
	for _, file := range files {
		p, uses, sets := readPart(t, file), []string(nil), []string(nil)
		if m := declared.FindStringSubmatch(p.header); m != nil {
			separates := func(r rune) bool { return strings.ContainsRune(" ,;", r) }
			uses, sets = strings.FieldsFunc(m[1], separates), strings.FieldsFunc(m[2], separates)
		}
		given := map[string]string{} // by what is named
		for _, name := range uses {
			given[name] = name
			if !strings.HasSuffix(name, ".lua") {
				continue
			}
			other := filepath.Join("scripts/parts", name)
			if _, err := os.Stat(other); err != nil {
				other = filepath.Join("scripts", name)
			}
			for _, defined := range readPart(t, other).defines {
				given[defined] = name
			}
		}
		for _, name := range slices.Concat(p.reads, p.sets) {
			if given[name] == "" {
				t.Errorf("%s does not say that it uses %s", file, name)
			}
			uses = slices.DeleteFunc(uses, func(use string) bool { return use == given[name] })
		}
		if len(uses) > 0 {
			t.Errorf("%s says in vain that it uses %v", file, uses)
		}
		if slices.Sort(sets); !slices.Equal(p.sets, sets) {
			t.Errorf("%s sets %v, and says %v", file, p.sets, sets)
		}
	}
}

// A script uses nothing that it does not define, and has no part where that is in scope already: it would cost each call twice.
func TestScriptsAreWhole(t *testing.T) {
	files, _ := filepath.Glob("scripts/*.lua")
	for _, file := range files {
		text, _, err := redistest.ReadScript(strings.TrimSuffix(filepath.Base(file), ".lua"))
		if err != nil {
			t.Fatal(err)
		}
		chunk, err := parse.Parse(strings.NewReader(text), file)
		if err != nil {
			t.Fatal(err)
		}
		if reads, sets := globals(t, chunk); len(reads)+len(sets) > 0 {
			t.Errorf("%s uses %v, and sets %v, which it does not define", file, reads, sets)
		}
		pastes(t, file, 0, &[]pasted{})
	}
}

// pasted is a part in scope, as deep as it is indented.
type pasted struct {
	file  string
	depth int
}

func pastes(t *testing.T, file string, depth int, scope *[]pasted) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		m, deep := including.FindStringSubmatch(line), depth+len(line)-len(strings.TrimLeft(line, " "))
		if line != "" && (m != nil || !strings.HasPrefix(strings.TrimSpace(line), "--")) {
			*scope = slices.DeleteFunc(*scope, func(p pasted) bool { return p.depth > deep })
		}
		if m == nil {
			continue
		}
		part := "scripts/parts/" + m[2] + ".lua"
		if len(readPart(t, part).defines) > 0 && slices.ContainsFunc(*scope, func(p pasted) bool { return p.file == part }) {
			t.Errorf("%s pastes %s, which is in scope", file, part)
		}
		*scope = append(*scope, pasted{part, deep})
		pastes(t, part, deep, scope)
	}
}
