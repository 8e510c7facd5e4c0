package keyfunc_test

import (
	"errors"
	"net/url"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// decoded is a request of a router that decodes all parameters.
type decoded struct{ request }

func (decoded) Decoded(string) bool { return true }

// at is a request in which the parameter p has a value.
func at(value string) request {
	r := get("/")
	r.params = map[string]string{"p": value}
	return r
}

func TestParamWithSeveralSpellings(t *testing.T) {
	p := keyfunc.Param("p")
	for value, w := range map[string]struct{ raw, decoded want }{
		"ann":             {want{key: "p=ann"}, want{key: "p=ann"}},
		"a b+ö@x;y":       {want{key: "p=a b+ö@x;y"}, want{key: "p=a b+ö@x;y"}},
		"100%":            {want{key: "p=100%"}, want{key: "p=100%"}},
		"%6":              {want{key: "p=%6"}, want{key: "p=%6"}},
		"50%off":          {want{key: "p=50%off"}, want{key: "p=50%off"}},
		"...":             {want{key: "p=..."}, want{key: "p=..."}},
		".hidden/..x/y..": {want{key: "p=.hidden/..x/y.."}, want{key: "p=.hidden/..x/y.."}},
		"a/b":             {want{key: "p=a/b"}, want{key: "p=a/b"}},
		"/a/b":            {want{key: "p=/a/b"}, want{key: "p=/a/b"}}, // as gin has it
		"%61nn":           {ambiguous, want{key: "p=%61nn"}},
		"s3cret%2E":       {ambiguous, want{key: "p=s3cret%2E"}},
		"a%2fb":           {ambiguous, want{key: "p=a%2fb"}},
		".":               {ambiguous, ambiguous},
		"..":              {ambiguous, ambiguous},
		"a/./b":           {ambiguous, ambiguous},
		"../s3cret":       {ambiguous, ambiguous},
		"a/..":            {ambiguous, ambiguous},
		"a/..;x/b":        {ambiguous, ambiguous},
		`..\s3cret`:       {ambiguous, ambiguous}, // to servers that take a backslash for a slash
		`a\..`:            {ambiguous, ambiguous},
		`a\b`:             {want{key: `p=a\\b`}, want{key: `p=a\\b`}},
		"a//b":            {ambiguous, ambiguous},
		"a/":              {ambiguous, ambiguous},
		"/":               {ambiguous, ambiguous},
		"//a":             {ambiguous, ambiguous},
	} {
		t.Run(value, func(t *testing.T) {
			check(t, p, keyfunc.Request(at(value)), w.raw)
			check(t, p, keyfunc.Request(decoded{at(value)}), w.decoded)
			check(t, keyfunc.Join(p), keyfunc.Request(decoded{at(value)}), w.decoded)
		})
	}
	r := at("/a") // of a router that does not begin a wildcard with the slash before it
	r.URL.Path = "/files//a"
	check(t, p, keyfunc.Request(r), ambiguous)
}

func TestPath(t *testing.T) {
	for value, w := range map[string]want{
		"a": {key: "p=a"}, "a/b": {key: "p=a/b"}, "/a/b": {key: "p=a/b"}, "a//b/": {key: "p=a/b"}, "a/./b": {key: "p=a/b"},
		"a/x/../b": {key: "p=a/b"}, "a%2Fb": {key: "p=a/b"}, "%61/b": {key: "p=a/b"}, "a/%2e/b": {key: "p=a/b"},
		"a/x/%2E%2e/b": {key: "p=a/b"}, "a%2F%2Fb": {key: "p=a/b"}, "a;x/b": {key: "p=a;x/b"}, "A/b": {key: "p=A/b"},
		"100%": {key: "p=100%"}, "100%25": {key: "p=100%"}, "a%20b": {key: "p=a b"},
		`a\b`: {key: `p=a\\b`}, `a/..\s3cret`: ambiguous, `a/x\..`: ambiguous, "..%5Cs3cret": ambiguous,
		".": ambiguous, "/": ambiguous, "a/..": ambiguous, "..": ambiguous, "../s3cret": ambiguous, "a/../../s3cret": ambiguous,
		"%2e%2e/s3cret": ambiguous, "%2561": ambiguous, "100%%61": ambiguous, "a/..;x/s3cret": ambiguous, "a/.;/b": ambiguous,
		"": missing,
	} {
		t.Run(value, func(t *testing.T) { check(t, keyfunc.Path(keyfunc.Param("p")), keyfunc.Request(at(value)), w) })
	}
	check(t, keyfunc.Path(key("/a//b")), anyRequest, want{key: "a/b"})
	check(t, keyfunc.Path(keyfunc.Payload("p")), keyfunc.Task(task{payload: `{"p":"/a//b"}`}), want{key: "p=a/b"})
	check(t, keyfunc.Join(keyfunc.Path(keyfunc.Named("file", keyfunc.Param("p"))), key("x")), keyfunc.Request(at("a/./b")),
		want{key: "file=a/b:x"})
	check(t, keyfunc.Optional(keyfunc.Path(keyfunc.Param("p"))), keyfunc.Request(at("/")), ambiguous) // not unlocked
}

func TestUnescaped(t *testing.T) {
	for value, w := range map[string]want{
		"ann": {key: "p=ann"}, "%61nn": {key: "p=ann"}, "ann%40x": {key: "p=ann@x"}, "a+b": {key: "p=a+b"}, "%2561": {key: "p=%61"},
		"a//b": {key: "p=a//b"}, "a%2F..": {key: "p=a/.."}, "": missing, "s3cret%": malformed, "%zz": malformed,
	} {
		t.Run(value, func(t *testing.T) { check(t, keyfunc.Unescaped(keyfunc.Param("p")), keyfunc.Request(at(value)), w) })
	}
}

func TestWhatIsSaidOfOneParameterIsNotOfAnother(t *testing.T) {
	r := at("a%62")
	check(t, keyfunc.Join(keyfunc.Unescaped(keyfunc.Param("p")), keyfunc.Param("p")), keyfunc.Request(r), ambiguous)
	for _, around := range []func(keyfunc.Func[keyfunc.Request]) keyfunc.Func[keyfunc.Request]{
		keyfunc.Path[keyfunc.Request], keyfunc.Unescaped[keyfunc.Request],
	} {
		check(t, around(keyfunc.Join(keyfunc.Param("p"), keyfunc.Param("p"))), keyfunc.Request(r), malformed)
		panics(t, func() { around(nil) }, "keyfunc.Param")
	}
}

func TestWhatPathDoesNotReach(t *testing.T) {
	several := keyfunc.Named("file", keyfunc.Join(keyfunc.Param("p"), keyfunc.Param("p")))
	check(t, keyfunc.Path(several), keyfunc.Request(at("x/../b")), malformed)
	check(t, keyfunc.Unescaped(several), keyfunc.Request(at("%61")), malformed)
	check(t, keyfunc.Path(keyfunc.Hash(keyfunc.Param("p"))), keyfunc.Request(at("a//b")), ambiguous)
	check(t, keyfunc.Unescaped(keyfunc.Hash(keyfunc.Param("p"))), keyfunc.Request(at("%61")), ambiguous)
	check(t, keyfunc.Path(keyfunc.Named("h", keyfunc.Hash(keyfunc.Path(keyfunc.Param("p"))))), keyfunc.Request(at("a//b")),
		want{key: "h=c14cddc033f64b9dea80ea675cf280a015e672516090a5626781153dc68fea11"})
}

func TestValidatePath(t *testing.T) {
	for _, c := range []struct {
		target string
		params []string
		ok     bool
	}{
		{"/orders/42/pay", nil, true},
		{"/orders/.42/..x/...", nil, true},
		{"/orders/42/%2e%2e/43/pay", []string{"42"}, false},
		{"/orders/42/../43/pay", []string{"42"}, false},
		{"/orders/42%2F..%2F43/pay", []string{"42%2F..%2F43"}, true}, // said to be read so
		{"/orders/42%2F..%2F43/pay", []string{"42/../43"}, true},
		{"/orders/42/..;x/43/pay", []string{"42"}, false},
		{`/orders/42/x%5C../43/pay`, []string{"42"}, false},
		{`/orders/42\..\43`, []string{"42"}, false},
		{`/orders/42%5C..%5C43`, []string{"42%5C..%5C43"}, true},
		{"/files/a/../b", []string{"a/../b"}, true},
		{"/files/../a/../b", []string{"a/../b"}, false},
		{"/files/%2e%2e/a/%252e%252e/b", []string{"a/%2e%2e/b"}, false},
	} {
		err := keyfunc.ValidatePath(get(c.target).Request, c.params...)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, keyfunc.ErrPath) {
			t.Errorf("%s with %q: %v", c.target, c.params, err)
		}
	}
}

// FuzzParamHasOneSpelling shows that a value which Param takes reads the same decoded, and
// cleaned.
func FuzzParamHasOneSpelling(f *testing.F) {
	for _, s := range []string{"a", "a/b", "/a", "%61", "a//b", "a/../b", "100%", "%2e%2e/b", "a/", "..;/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := keyfunc.Param("p")(at(s)); err != nil {
			return
		}
		if other, err := url.PathUnescape(s); err == nil && other != s {
			t.Errorf("%q decodes to %q", s, other)
		}
		if other := path.Clean(s); other != s {
			t.Errorf("%q is cleaned to %q", s, other)
		}
	})
}

// FuzzPathCanonical compares Path with what net/http and path do, and shows that its form is
// one.
func FuzzPathCanonical(f *testing.F) {
	for _, s := range []string{"a", "/a//b/", "a/./b", "a/x/../b", "a%2Fb", "../b", "%2561", "100%", "a/..;x", "%2e%2e/b"} {
		f.Add(s)
	}
	canonical := keyfunc.Path(value(keyfunc.Param("p")))
	f.Fuzz(func(t *testing.T, s string) {
		got, err := value(canonical)(at(s))
		if err != nil {
			return
		}
		plain, err := url.PathUnescape(s)
		if err != nil {
			plain = s
		}
		if want := strings.TrimPrefix(path.Clean("/"+plain), "/"); got != want {
			t.Errorf("%q: %q; want %q", s, got, want)
		}
		if again, err := value(canonical)(at(got)); again != got || err != nil {
			t.Errorf("%q: %q, and of that %q, %v", s, got, again, err)
		}
	})
}

// TestPathOfAnySpelling spells one path in many ways.
func TestPathOfAnySpelling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		segment := rapid.StringMatching(`[a-z ö@]{1,4}`)
		segments := rapid.SliceOfN(segment, 1, 4).Draw(rt, "segments")
		var spelling strings.Builder
		for _, s := range segments {
			spelling.WriteString(rapid.SampledFrom([]string{"/", "//", "/./", "/x/../", "/%2e/", "/x/%2E%2E/", "%2F", "%2f./"}).Draw(rt, "between"))
			for _, c := range []byte(s) {
				if c >= 0x80 || rapid.Bool().Draw(rt, "escaped") {
					const digits = "0123456789abcdef"
					spelling.WriteString("%" + string(digits[c>>4]) + string(digits[c&15]))
				} else {
					spelling.WriteByte(c)
				}
			}
		}
		spelling.WriteString(rapid.SampledFrom([]string{"", "/", "/.", "%2F"}).Draw(rt, "end"))
		want := keyfunc.Key("p", strings.Join(segments, "/"))
		if got, err := keyfunc.Path(keyfunc.Param("p"))(at(spelling.String())); got != want || err != nil {
			rt.Fatalf("%q: %q, %v; want %q", &spelling, got, err, want)
		}
	})
}
