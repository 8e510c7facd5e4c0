package keyfunc_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// modelled is a key function and what its key must consist of.
type modelled struct {
	text  string // as it is written
	f     keyfunc.Func[keyfunc.Request]
	parts func(v values) []pair
}

// values are what a client, or authentication, has chosen.
type values struct{ param, a, b, header, cookie, user string }

func (v values) request() request {
	r := get("/", "X-H", v.header)
	r.Header.Set("Cookie", "c="+url.QueryEscape(v.cookie))
	r.URL.RawQuery = url.Values{"a": {v.a}, "b": {v.b}}.Encode()
	r.params = map[string]string{"a": v.param}
	r.values = map[any]any{"a": v.user}
	return r
}

// encode is the inverse of decode.
func encode(parts []pair) string {
	escape := strings.NewReplacer(`\`, `\\`, ":", `\:`, "=", `\=`)
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = escape.Replace(p.value)
		if p.name != "" {
			texts[i] = escape.Replace(p.name) + "=" + texts[i]
		}
	}
	return strings.Join(texts, ":")
}

func one(name string, value func(v values) string) func(v values) []pair {
	return func(v values) []pair { return []pair{{name, value(v)}} }
}

// leaves read one value each, named, or by hand and unchanged.
func leaves(t *testing.T) []modelled {
	template, err := keyfunc.Template("a:{query.a}:b={query.b}")
	if err != nil {
		t.Fatal(err)
	}
	query := keyfunc.Query("a")
	a := func(v values) string { return v.a }
	return []modelled{
		{"Param(a)", keyfunc.Param("a"), one("a", func(v values) string { return v.param })},
		{"Query(a)", query, one("a", a)},
		{"Query(b)", keyfunc.Query("b"), one("b", func(v values) string { return v.b })},
		{"Header(X-H)", keyfunc.Header("x-h"), one("X-H", func(v values) string { return v.header })},
		{"Cookie(c)", keyfunc.Cookie("c"), one("cookie.c", func(v values) string { return v.cookie })},
		{"Value(a)", keyfunc.Value("a"), one("value.a", func(v values) string { return v.user })},
		{"Const(a=1)", keyfunc.Const[keyfunc.Request]("a=1"), one("", func(values) string { return "a=1" })},
		{"Template", template, func(v values) []pair { return []pair{{"", "a"}, {"", v.a}, {"b", v.b}} }},
		{"by hand", func(r keyfunc.Request) (string, error) { return r.HTTP().URL.Query().Get("a"), nil }, one("", a)},
		{"handed on", func(r keyfunc.Request) (string, error) { return query(r) }, one("a", a)},
		{"by hand, of a key", func(r keyfunc.Request) (string, error) {
			key, err := query(r)
			return "x" + key, err
		}, one("", func(v values) string { return "x" + encode([]pair{{"a", v.a}}) })},
		{"one of two", func(r keyfunc.Request) (string, error) {
			key, err := query(r)
			_, _ = keyfunc.Query("b")(r)
			return key, err
		}, one("a", a)},
	}
}

// combined is a random combination.
func combined(t *rapid.T, leaves []modelled, depth int) modelled {
	name := rapid.SampledFrom([]string{"a", "b", "a=b", "a:b", `a\`})
	kind := rapid.SampledFrom([]string{"leaf", "leaf", "Join", "Scope", "Named", "Hash", "Optional"}).Draw(t, "kind")
	if depth == 0 || kind == "leaf" {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	if kind == "Join" {
		m := modelled{text: "Join("}
		var inner []modelled
		var funcs []keyfunc.Func[keyfunc.Request]
		for range rapid.IntRange(1, 3).Draw(t, "parts") {
			part := combined(t, leaves, depth-1)
			inner, funcs, m.text = append(inner, part), append(funcs, part.f), m.text+part.text+", "
		}
		m.text += ")"
		m.f = keyfunc.Join(funcs...)
		m.parts = func(v values) (parts []pair) {
			for _, part := range inner {
				parts = append(parts, part.parts(v)...)
			}
			return parts
		}
		return m
	}
	inner := combined(t, leaves, depth-1)
	m := modelled{text: kind + "(" + inner.text + ")"}
	// only is what stands for all parts where one is wanted.
	only := func(v values) pair {
		if parts := inner.parts(v); len(parts) > 1 {
			return pair{"", encode(parts)}
		}
		return inner.parts(v)[0]
	}
	switch kind {
	case "Scope":
		n := name.Draw(t, "name")
		m.f = keyfunc.Scope(n, inner.f)
		m.parts = func(v values) []pair { return append([]pair{{"", n}}, inner.parts(v)...) }
	case "Named":
		n := name.Draw(t, "name")
		m.f = keyfunc.Named(n, inner.f)
		m.parts = func(v values) []pair { return []pair{{n, only(v).value}} }
	case "Hash":
		m.f = keyfunc.Hash(inner.f)
		m.parts = func(v values) []pair {
			p := only(v)
			sum := sha256.Sum256([]byte(p.value))
			return []pair{{p.name, hex.EncodeToString(sum[:])}}
		}
	case "Optional":
		m.f, m.parts = keyfunc.Optional(inner.f), inner.parts
	}
	return m
}

// TestKeysOfAnyTwoFunctionsAreTheirParts shows that a key can be read in one way only:
// functions share one if they have the same names and values in it, and only then.
func TestKeysOfAnyTwoFunctionsAreTheirParts(t *testing.T) {
	leaves := leaves(t)
	text := rapid.OneOf(
		rapid.StringOfN(rapid.SampledFrom([]rune(`ab:=\1`)), 1, 5, -1),
		rapid.SampledFrom([]string{"a=1", "value.a=1", `a\=1`, "1:b=2", "a", "b", "1"}))
	rapid.Check(t, func(rt *rapid.T) {
		m := combined(rt, leaves, 3)
		v := values{text.Draw(rt, "param"), text.Draw(rt, "a"), text.Draw(rt, "b"),
			text.Draw(rt, "header"), text.Draw(rt, "cookie"), text.Draw(rt, "user")}
		key, err := keyfunc.Join(m.f)(v.request())
		if err != nil {
			rt.Fatal(m.text, err)
		}
		if got, parts := decode(key), m.parts(v); !slices.Equal(got, parts) {
			rt.Fatalf("%s of %+v is %q, which reads as %q; want %q", m.text, v, key, got, parts)
		}
	})
}
