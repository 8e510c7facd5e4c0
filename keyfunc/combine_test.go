package keyfunc_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

var (
	anyRequest = keyfunc.Request(request{})
	errOwn     = errors.New("own error")
)

func TestConst(t *testing.T) {
	check(t, keyfunc.Const[keyfunc.Request]("a"), anyRequest, want{key: "a"})
	check(t, keyfunc.Const[keyfunc.Request]("a:b=c"), anyRequest, want{key: `a\:b\=c`})
	check(t, keyfunc.Join(keyfunc.Const[keyfunc.Request]("a:b=c")), anyRequest, want{key: `a\:b\=c`})
	panics(t, func() { keyfunc.Const[keyfunc.Task]("") }, `Const[keyfunc.Request]("order")`)
}

func TestJoin(t *testing.T) {
	check(t, keyfunc.Join(key("a")), anyRequest, want{key: "a"})
	check(t, keyfunc.Join(key("a:b"), key("c")), anyRequest, want{key: `a\:b:c`})
	check(t, keyfunc.Join(key("a"), key("b:c")), anyRequest, want{key: `a:b\:c`})
	check(t, keyfunc.Join(key(`a\`), key("b")), anyRequest, want{key: `a\\:b`})
	check(t, keyfunc.Join(keyfunc.Join(key("a"), key("b")), key("c")), anyRequest, want{key: `a:b:c`})
	check(t, keyfunc.Join(key("a"), key("")), anyRequest, want{err: keyfunc.ErrMissing})
}

func TestJoinSkipsOnlyWhatNothingRefuses(t *testing.T) {
	skip, missing, ambiguous := failing(keyfunc.ErrSkip), failing(keyfunc.ErrMissing), failing(keyfunc.ErrAmbiguous)
	check(t, keyfunc.Join(key("a"), skip), anyRequest, want{err: keyfunc.ErrSkip})
	check(t, keyfunc.Join(skip, key("a")), anyRequest, want{err: keyfunc.ErrSkip})
	check(t, keyfunc.Join(skip, ambiguous), anyRequest, want{err: keyfunc.ErrAmbiguous})
	check(t, keyfunc.Join(ambiguous, skip), anyRequest, want{err: keyfunc.ErrAmbiguous})
	check(t, keyfunc.Join(skip, missing), anyRequest, want{err: keyfunc.ErrMissing})
	check(t, keyfunc.Join(missing, ambiguous), anyRequest, want{err: keyfunc.ErrMissing})
	check(t, keyfunc.Join(key("a"), keyfunc.Optional(missing)), anyRequest, want{err: keyfunc.ErrSkip})
	check(t, keyfunc.Optional(keyfunc.Join(key("a"), missing)), anyRequest, want{err: keyfunc.ErrSkip})
}

func TestJoinErrorsNameThePart(t *testing.T) {
	r := keyfunc.Request(get("/?item=x"))
	fails(t, keyfunc.Join(key("a"), keyfunc.Query("id")), r, `keyfunc: part 2, query parameter "id": missing`)
	fails(t, keyfunc.Join(key("a"), keyfunc.Int(keyfunc.Query("item"))), r,
		`keyfunc: part 2, query parameter "item", Int: malformed: not a decimal integer of at most 64 digits`)
	fails(t, keyfunc.Join(keyfunc.Join(key("a"), key(""))), r, `keyfunc: part 1, part 2, key: missing`)
	fails(t, keyfunc.Join(failing(errOwn)), r, `keyfunc: part 1: own error`)
	check(t, keyfunc.Join(failing(errOwn)), r, want{err: errOwn})
}

func TestJoinLeavesErrorsAsTheyAre(t *testing.T) {
	_, err := keyfunc.Query("id")(get("/"))
	for range 2 {
		fails(t, keyfunc.Join(failing(err)), anyRequest, `keyfunc: part 1, query parameter "id": missing`)
	}
}

func TestJoinKeepsItsParts(t *testing.T) {
	parts := []keyfunc.Func[keyfunc.Request]{key("a"), key("b")}
	f := keyfunc.Join(parts...)
	parts[0] = key("x")
	check(t, f, anyRequest, want{key: "a:b"})
}

func TestScope(t *testing.T) {
	check(t, keyfunc.Scope("order", key("a:b")), anyRequest, want{key: `order:a\:b`})
	check(t, keyfunc.Scope("a:b=c", key("d")), anyRequest, want{key: `a\:b\=c:d`})
	check(t, keyfunc.Scope("a", keyfunc.Join(key("b"), key("c"))), anyRequest, want{key: `a:b:c`})
	check(t, keyfunc.Scope(`a\`, key("b")), anyRequest, want{key: `a\\:b`})
	check(t, keyfunc.Scope("a", key("")), anyRequest, want{err: keyfunc.ErrMissing})
	check(t, keyfunc.Scope("a", failing(keyfunc.ErrSkip)), anyRequest, want{err: keyfunc.ErrSkip})
	check(t, keyfunc.Join(keyfunc.Scope("a", key("b")), key("c")), anyRequest, want{key: `a:b:c`})
}

func TestNamed(t *testing.T) {
	check(t, keyfunc.Named("orderID", key("42")), anyRequest, want{key: "orderID=42"})
	check(t, keyfunc.Named("a=b", key("c")), anyRequest, want{key: `a\=b=c`})
	check(t, keyfunc.Named("a", key("b=c")), anyRequest, want{key: `a=b\=c`})
	check(t, keyfunc.Named(`a\`, key("b")), anyRequest, want{key: `a\\=b`})
	check(t, keyfunc.Named("a", keyfunc.Named("b", key("c:d"))), anyRequest, want{key: `a=c\:d`})
	check(t, keyfunc.Named("a", keyfunc.Join(key("b"), key("c"))), anyRequest, want{key: `a=b\:c`})
	check(t, keyfunc.Named("a", key("")), anyRequest, want{err: keyfunc.ErrMissing})
	check(t, keyfunc.Named("a", failing(keyfunc.ErrSkip)), anyRequest, want{err: keyfunc.ErrSkip})
}

func TestInt(t *testing.T) {
	digits := strings.Repeat("9", 64)
	for value, w := range map[string]want{
		"42": {key: "42"}, "042": {key: "42"}, "+42": {key: "42"}, "-42": {key: "-42"}, "-042": {key: "-42"},
		"0": {key: "0"}, "-0": {key: "0"}, "+0": {key: "0"}, "000": {key: "0"}, "-000": {key: "0"},
		"9007199254740993": {key: "9007199254740993"}, digits: {key: digits}, "-" + digits: {key: "-" + digits},
		"": {err: keyfunc.ErrMissing}, "+": {err: keyfunc.ErrMalformed}, "-": {err: keyfunc.ErrMalformed},
		"+-1": {err: keyfunc.ErrMalformed}, "-+1": {err: keyfunc.ErrMalformed}, "--1": {err: keyfunc.ErrMalformed},
		" 1": {err: keyfunc.ErrMalformed}, "1 ": {err: keyfunc.ErrMalformed}, "1_000": {err: keyfunc.ErrMalformed},
		"0x10": {err: keyfunc.ErrMalformed}, "1.0": {err: keyfunc.ErrMalformed}, "1e3": {err: keyfunc.ErrMalformed},
		"٤٢": {err: keyfunc.ErrMalformed}, "４２": {err: keyfunc.ErrMalformed}, "s3cret": {err: keyfunc.ErrMalformed},
		"0" + digits: {err: keyfunc.ErrMalformed}, "1\n": {err: keyfunc.ErrMalformed}, "1\x00": {err: keyfunc.ErrMalformed},
	} {
		t.Run(value, func(t *testing.T) { check(t, keyfunc.Int(key(value)), anyRequest, w) })
	}
	check(t, keyfunc.Int(failing(keyfunc.ErrSkip)), anyRequest, want{err: keyfunc.ErrSkip})
}

func TestUUID(t *testing.T) {
	const canonical = "018f3c9a-abcd-7000-8000-00000000000f"
	for value, w := range map[string]want{
		canonical:                                {key: canonical},
		strings.ToUpper(canonical):               {key: canonical},
		strings.ReplaceAll(canonical, "-", ""):   {key: canonical},
		"{" + canonical + "}":                    {key: canonical},
		"urn:uuid:" + canonical:                  {key: canonical},
		"URN:UUID:" + strings.ToUpper(canonical): {key: canonical},
		"":                                       {err: keyfunc.ErrMissing},
		"s3cret":                                 {err: keyfunc.ErrMalformed},
		"(" + canonical + ")":                    {err: keyfunc.ErrMalformed},
		"{" + canonical + " ":                    {err: keyfunc.ErrMalformed},
		" " + canonical + "}":                    {err: keyfunc.ErrMalformed},
		" " + canonical:                          {err: keyfunc.ErrMalformed},
		canonical + "\n":                         {err: keyfunc.ErrMalformed},
		strings.ReplaceAll(canonical, "-", "_"):  {err: keyfunc.ErrMalformed},
		strings.ReplaceAll(canonical, "f", "g"):  {err: keyfunc.ErrMalformed},
	} {
		t.Run(value, func(t *testing.T) { check(t, keyfunc.UUID(key(value)), anyRequest, w) })
	}
	check(t, keyfunc.UUID(failing(keyfunc.ErrSkip)), anyRequest, want{err: keyfunc.ErrSkip})
}

func TestHash(t *testing.T) {
	check(t, keyfunc.Hash(key("abc")), anyRequest, want{key: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"})
	check(t, keyfunc.Hash(key("")), anyRequest, want{err: keyfunc.ErrMissing})
	check(t, keyfunc.Hash(failing(keyfunc.ErrSkip)), anyRequest, want{err: keyfunc.ErrSkip})
	got, err := keyfunc.Hash(key(strings.Repeat("long", 1<<20)))(anyRequest)
	if err != nil || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(got) {
		t.Errorf("got %q, %v; want 64 hexadecimal digits", got, err)
	}
}

func TestOptionalTurnsOnlyMissingIntoSkip(t *testing.T) {
	check(t, keyfunc.Optional(key("a")), anyRequest, want{key: "a"})
	check(t, keyfunc.Optional(key("")), anyRequest, want{err: keyfunc.ErrSkip})
	check(t, keyfunc.Optional(failing(keyfunc.ErrMissing)), anyRequest, want{err: keyfunc.ErrSkip})
	for _, err := range []error{keyfunc.ErrAmbiguous, keyfunc.ErrMalformed, keyfunc.ErrTooLarge, keyfunc.ErrSkip} {
		check(t, keyfunc.Optional(failing(err)), anyRequest, want{err: err})
	}
	if _, err := keyfunc.Optional(failing(errOwn))(anyRequest); err != errOwn {
		t.Errorf("got %v; want the error unchanged", err)
	}
	r := keyfunc.Request(get("/?id=1&id=2"))
	check(t, keyfunc.Optional(keyfunc.Query("id")), r, want{err: keyfunc.ErrAmbiguous})
	check(t, keyfunc.Optional(keyfunc.Int(keyfunc.Query("other"))), r, want{err: keyfunc.ErrSkip})
}

func TestCombiningConstructorsPanic(t *testing.T) {
	var none keyfunc.Func[keyfunc.Request]
	panics(t, func() { keyfunc.Join[keyfunc.Request]() }, "Join(keyfunc.Param")
	panics(t, func() { keyfunc.Join(key("a"), none) }, "Join", "keyfunc.Param")
	panics(t, func() { keyfunc.Scope("", key("a")) }, `Scope("order"`)
	panics(t, func() { keyfunc.Scope("a", none) }, "Scope", "keyfunc.Param")
	panics(t, func() { keyfunc.Named("", key("a")) }, `Named("orderID"`)
	panics(t, func() { keyfunc.Named("a", none) }, "Named", "keyfunc.Param")
	panics(t, func() { keyfunc.Int(none) }, "Int", "keyfunc.Param")
	panics(t, func() { keyfunc.UUID(none) }, "UUID", "keyfunc.Param")
	panics(t, func() { keyfunc.Hash(none) }, "Hash", "keyfunc.Param")
	panics(t, func() { keyfunc.Optional(none) }, "Optional", "keyfunc.Param")
}
