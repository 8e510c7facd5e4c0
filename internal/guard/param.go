package guard

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const errNoRoute setupError = "ByParam runs before the router has matched a route: wrap the route's handler, not the whole mux " +
	"(net/http: mux.Handle(pattern, ByParam(name)(handler)); " +
	"chi: r.With(ByParam(name)).Post(pattern, handler), also inside of r.Route; echo: Use, not Pre, nor RouteNotFound; " +
	"gin: a route, not NoRoute or NoMethod)"

// declares reports whether the matched route has the parameter to guard by.
func (g *Guard) declares(r Request) (bool, *Refusal) {
	pattern, known := r.Route()
	if known && pattern == "" {
		return false, nil // nothing matched: the framework answers 404 or 405
	}
	name := g.config.Param
	_, declared := r.Param(name)
	if err := misspelt(r, name, declared); err != nil {
		return false, misconfigured.because(err)
	}
	if declared {
		if g.behind.Load() != declaring { // or all processors write to it
			g.behind.Store(declaring)
		}
		return true, nil
	}
	if !known {
		return false, misconfigured.because(errNoRoute)
	}
	if g.config.Strict {
		return false, misconfigured.because(setupError(fmt.Sprintf(
			"the route %q does not declare the path parameter %q, and Strict lets no such route pass: "+
				"declare it, or guard that route by something else", pattern, name)))
	}
	if _, again := g.warned.Load(pattern); again {
		return false, nil
	}
	if err := g.undeclared(r, name); err != nil {
		return false, misconfigured.because(err)
	}
	if _, again := g.warned.LoadOrStore(pattern, true); !again {
		g.log.Each(r.HTTP().Context(), slog.LevelWarn, "a route is not guarded, because it does not declare the parameter",
			"route", routeText(r), "parameter", name)
	}
	return false, nil
}

// What is known of the routes behind a guard by a path parameter.
const (
	unseen    int32 = iota
	declaring       // one of them declares it
	lacking         // a check has found none that does
)

// undeclared returns an error unless a route behind the guard declares the parameter: one that the router lists, or that the
// guard has seen, in a request or in a check.
func (g *Guard) undeclared(r Request, name string) error {
	names, known := r.Declared(g)
	behind := g.behind.Load()
	switch {
	case behind == declaring, behind == unseen && slices.Contains(names, name):
		return nil
	case known:
		return setupError(undeclared("no route behind the guard", []string{name}, names))
	}
	return setupError(fmt.Sprintf("no route that the guard has seen declares the path parameter %q, by which the lock is, and the router "+
		"does not list its routes: take the guard away from this one, or have RouteCheck report on all of them at the start", name))
}

// undeclared says which path parameters there are instead of others.
func undeclared(noRoute string, names, there []string) string {
	slices.Sort(there)
	return fmt.Sprintf("%s declares the path parameter %s, by which the lock is: they declare %s",
		noRoute, quoted(names), cmp.Or(quoted(slices.Compact(there)), "none"))
}

func quoted(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = strconv.Quote(name)
	}
	return strings.Join(all, ", ")
}

// misspelt returns an error when the matched route declares the parameter twice, or
// not, but one that is spelt nearly like it.
func misspelt(r Request, name string, declared bool) error {
	names := r.Params()
	if declared {
		if !isTwice(names, name) {
			return nil
		}
		route, _ := r.Route()
		return twice("the route "+strconv.Quote(route), name)
	}
	near := slices.IndexFunc(names, func(other string) bool { return alike(name, other) })
	if near < 0 {
		// Some routers list the names of their last level only, but find the values of all by name.
		names = spellings(name)
		near = slices.IndexFunc(names, func(other string) bool {
			_, declared := r.Param(other)
			return declared
		})
	}
	if near < 0 {
		return nil
	}
	route, _ := r.Route()
	return misnamed("the route "+strconv.Quote(route), name, names[near])
}

func isTwice(names []string, name string) bool {
	first := slices.Index(names, name)
	return first >= 0 && slices.Contains(names[first+1:], name)
}

// twice says that a route declares a path parameter twice.
func twice(route, name string) setupError {
	return setupError(fmt.Sprintf("%s declares the path parameter %q twice: give them two names", route, name))
}

// misnamed says that a route declares a path parameter in another spelling.
func misnamed(route, name, there string) setupError {
	return setupError(fmt.Sprintf("the lock is by the path parameter %q, but %s declares %q: write one name in both places",
		name, route, there))
}

// alike reports whether two names differ in letter case, "_" and "-" only.
func alike(a, b string) bool {
	bare := strings.NewReplacer("_", "", "-", "")
	return strings.EqualFold(bare.Replace(a), bare.Replace(b))
}

// spellings returns other ways to write a name of several words: orderID as orderId,
// order_id and so on.
func spellings(name string) []string {
	words := words(name)
	titled := make([]string, len(words))
	for i, w := range words {
		titled[i] = title(w)
	}
	last := len(words) - 1
	shouted := slices.Clone(titled) // the last word may be an initialism
	shouted[last] = strings.ToUpper(words[last])
	var all []string
	for _, form := range [][]string{words, titled, shouted} {
		for _, separator := range []string{"", "_", "-"} {
			s := strings.Join(form, separator)
			all = append(all, s, words[0]+strings.TrimPrefix(s, form[0]), strings.ToUpper(s))
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == name })
}

// words returns the words of a name in lower case. A final "id" is a word of its own.
func words(name string) []string {
	var spaced strings.Builder
	before := rune(0)
	for _, c := range name {
		if unicode.IsUpper(c) && !unicode.IsUpper(before) {
			spaced.WriteByte('_')
		}
		spaced.WriteRune(unicode.ToLower(c))
		before = c
	}
	words := strings.FieldsFunc(spaced.String(), func(c rune) bool { return c == '_' || c == '-' })
	if len(words) == 0 {
		return []string{name}
	}
	last := len(words) - 1
	if stem, found := strings.CutSuffix(words[last], "id"); found && stem != "" {
		words = append(words[:last], stem, "id")
	}
	return words
}

func title(word string) string {
	c, n := utf8.DecodeRuneInString(word)
	return string(unicode.ToUpper(c)) + word[n:]
}

// mustName panics unless name can be that of a path parameter, with a sentence that
// says how to write it. call is where it stands, such as `ByParam(%s)`.
func mustName(adapter, call, name string) {
	say := func(name string) string { return fmt.Sprintf(call, strconv.Quote(name)) }
	bare := bareName(name)
	switch {
	case name != "" && bare == name:
		return
	case bare != "":
		panic(adapter + ": " + say(name) +
			`: the name of a path parameter is written without the router's ":", "{", "}", "*", "/" and "...": ` + say(bare))
	case name != "":
		panic(adapter + ": " + say(name) +
			`: the path parameter has no name; to lock by it, write By(keyfunc.Named("path", keyfunc.Param(` + strconv.Quote(name) + `)))`)
	}
	panic(adapter + ": " + say(name) + ": a path parameter needs a name, such as " + say("orderID"))
}

const signs = ":{}*/"

// bareName returns the name that somebody meant who wrote it as in a pattern.
func bareName(name string) string {
	name = strings.TrimSpace(name)
	begin := strings.LastIndexByte(name, '/') + 1 // where no sign marks the segment
	for i, c := range name {
		if c == '{' || (c == ':' || c == '*') && (i == 0 || name[i-1] == '/') {
			begin = i
			break
		}
	}
	fields := strings.FieldsFunc(name[begin:], func(c rune) bool { return strings.ContainsRune(signs, c) })
	if len(fields) == 0 {
		return ""
	}
	return strings.TrimSuffix(fields[0], "...")
}

// wildcard is the name of a path parameter that has none.
const wildcard = "*"

// ColonParams returns the names of the path parameters of a pattern in which they begin with one
// of some signs, such as ":", and end before the next "/". `\:` is no sign. One without a
// name is "*".
func ColonParams(pattern, signs string) (names []string) {
	pattern = strings.ReplaceAll(pattern, `\:`, "")
	for {
		begin := strings.IndexAny(pattern, signs)
		if begin < 0 {
			return names
		}
		name, rest, _ := strings.Cut(pattern[begin+1:], "/")
		names = append(names, cmp.Or(name, wildcard))
		pattern = rest
	}
}
