package keyfunc_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// joined is the key of parts, or false if one is empty.
func joined(t *testing.T, parts ...string) (string, bool) {
	t.Helper()
	funcs := make([]keyfunc.Func[keyfunc.Request], len(parts))
	for i, part := range parts {
		funcs[i] = key(part)
	}
	whole, err := keyfunc.Join(funcs...)(anyRequest)
	if err != nil {
		if !errors.Is(err, keyfunc.ErrMissing) || !slices.Contains(parts, "") {
			t.Fatalf("parts %q: %v", parts, err)
		}
		return "", false
	}
	return whole, true
}

// FuzzJoinInjective shows that the parts can be told from the key, and that parts
// whose border is elsewhere have another key.
func FuzzJoinInjective(f *testing.F) {
	f.Add("a:b", "c", "d")
	f.Add(`a\`, `:b\\`, `\:`)
	f.Add("a\x00:\xff", "::", `\`)
	f.Fuzz(func(t *testing.T, a, b, c string) {
		whole, ok := joined(t, a, b, c)
		if !ok {
			return
		}
		if got := decode(whole); !slices.Equal(got, []pair{{"", a}, {"", b}, {"", c}}) {
			t.Fatalf("%q, %q, %q is %q, which reads as %q", a, b, c, whole, got)
		}
		for _, s := range []string{a + b, a + ":" + b, a + `\:` + b, a + "=" + b} {
			for i := range s {
				if s[:i] == a && s[i:] == b {
					continue
				}
				if other, ok := joined(t, s[:i], s[i:], c); ok && other == whole {
					t.Fatalf("%q, %q and %q, %q share %q", a, b, s[:i], s[i:], whole)
				}
			}
		}
	})
}

// templated is the key of two values, or false if one is empty.
func templated(t *testing.T, f keyfunc.Func[keyfunc.Request], a, b string) (string, bool) {
	t.Helper()
	whole, err := f(ab(a, b))
	if err != nil {
		if !errors.Is(err, keyfunc.ErrMissing) || a != "" && b != "" {
			t.Fatalf("values %q, %q: %v", a, b, err)
		}
		return "", false
	}
	return whole, true
}

// FuzzTemplateInjective shows that values that imitate the text of the template,
// wherever they are cut, have another key, and that a template is refused only for
// the reasons that are documented.
func FuzzTemplateInjective(f *testing.F) {
	f.Add("order:", ":user:", "", "1", "2:user:3")
	f.Add(":", "-", "!", "1-2", `3\-4`)
	f.Add("=", "aa", "a", "aaa", "aaaa")
	f.Add("é:", "éè", "è", "éé", "è\xc3")
	f.Add("a=", "=", "=", "=", "b=c")
	f.Add(":", `b\`, "", "1", "2")
	f.Add(":", "", "", "1", "2")
	f.Add("", ":", "", "1", "2")
	f.Fuzz(func(t *testing.T, before, between, after, a, b string) {
		template := before + "{query.a}" + between + "{query.b}" + after
		key, err := keyfunc.Template(template)
		literals := before + between + after
		if legal := utf8.ValidString(template) && (strings.HasSuffix(before, ":") || strings.HasSuffix(before, "=")) &&
			between != "" && !strings.ContainsAny(literals, `{}\`); legal != (err == nil) {
			t.Fatalf("template %q: %v", template, err)
		}
		if err != nil {
			return
		}
		whole, ok := templated(t, key, a, b)
		if !ok {
			return
		}
		for _, s := range []string{a + between + b, whole, a + between + b + after, before + a + between + b, a + b} {
			for i := range len(s) + 1 {
				rest := s[i:]
				for _, c := range []string{rest, strings.TrimPrefix(rest, between), strings.TrimSuffix(strings.TrimPrefix(rest, between), after)} {
					if s[:i] == a && c == b {
						continue
					}
					if other, ok := templated(t, key, s[:i], c); ok && other == whole {
						t.Fatalf("template %q: %q, %q and %q, %q share %q", template, a, b, s[:i], c, whole)
					}
				}
			}
		}
	})
}

func TestTemplateIsInjective(t *testing.T) {
	literal := rapid.StringOfN(rapid.SampledFrom([]rune("ab:=è")), 0, 3, -1)
	value := rapid.StringOfN(rapid.SampledFrom([]rune(`ab:=\éè`)), 1, 5, -1)
	rapid.Check(t, func(rt *rapid.T) {
		between := literal.Filter(func(s string) bool { return s != "" }).Draw(rt, "between")
		f, err := keyfunc.Template(literal.Draw(rt, "before") + ":{query.a}" + between + "{query.b}" + literal.Draw(rt, "after"))
		if err != nil {
			rt.Fatal(err)
		}
		seen := map[string][2]string{}
		for range 30 {
			v := [2]string{value.Draw(rt, "a"), value.Draw(rt, "b")}
			whole, _ := templated(t, f, v[0], v[1])
			if other, ok := seen[whole]; ok && other != v {
				rt.Fatalf("%q and %q share %q", v, other, whole)
			}
			seen[whole] = v
		}
	})
}
