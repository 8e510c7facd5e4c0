package keyfunc_test

import (
	"errors"
	"math"
	"math/big"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/latchkey-go/latchkey/keyfunc"
)

type (
	userKey  struct{}
	userID   string
	level    int
	rawID    []byte
	twoParts struct{ a, b string }
	pointer  struct{ id string }
	unready  struct{}
	account  struct{ ID int }
	celsius  float64
	stringer map[string]int
)

func (level) String() string                 { return "unknown" }
func (userID) String() string                { return "hidden" }
func (p twoParts) String() string            { return p.a + "/" + p.b }
func (p *pointer) String() string            { return p.id } // panics on nil
func (unready) MarshalText() ([]byte, error) { return nil, errors.New(secret) }
func (celsius) String() string               { return "warm" }
func (stringer) String() string              { return "map" }

func TestValue(t *testing.T) {
	id := uuid.MustParse("018f3c9a-0000-7000-8000-000000000001")
	var nobody *pointer
	var noID *uuid.UUID
	for name, c := range map[string]struct {
		stored any
		want
	}{
		"string":                    {"alice", want{key: "alice"}},
		"string type":               {userID("alice"), want{key: "alice"}},
		"int":                       {42, want{key: "42"}},
		"int8":                      {int8(-128), want{key: "-128"}},
		"int64":                     {int64(math.MinInt64), want{key: "-9223372036854775808"}},
		"uint64":                    {uint64(math.MaxUint64), want{key: "18446744073709551615"}},
		"zero":                      {0, want{key: "0"}},
		"enumeration":               {level(3), want{key: "3"}},
		"bytes":                     {[]byte("ab"), want{key: "ab"}},
		"bytes type":                {rawID("ab"), want{key: "ab"}},
		"UUID":                      {id, want{key: id.String()}},
		"pointer to UUID":           {&id, want{key: id.String()}},
		"netip.Addr":                {netip.MustParseAddr("192.0.2.1"), want{key: "192.0.2.1"}},
		"net.IP":                    {net.ParseIP("192.0.2.1"), want{key: "192.0.2.1"}},
		"net.IP in 4 bytes":         {net.ParseIP("192.0.2.1").To4(), want{key: "192.0.2.1"}},
		"big.Int":                   {big.NewInt(42), want{key: "42"}},
		"time":                      {time.Unix(0, 0).UTC(), want{key: "1970-01-01T00:00:00Z"}},
		"Stringer":                  {twoParts{"a", "b"}, want{key: "a/b"}},
		"nothing":                   {nil, want{err: keyfunc.ErrMissing}},
		"empty string":              {"", want{err: keyfunc.ErrMissing}},
		"empty bytes":               {[]byte(nil), want{err: keyfunc.ErrMissing}},
		"nil IP":                    {net.IP(nil), want{err: keyfunc.ErrMissing}},
		"nil Stringer":              {nobody, want{err: keyfunc.ErrMissing}},
		"nil TextMarshaler":         {noID, want{err: keyfunc.ErrMissing}},
		"nil pointer":               {(*account)(nil), want{err: keyfunc.ErrMissing}},
		"pointer Stringer":          {&pointer{secret}, want{err: keyfunc.ErrMalformed}},
		"URL":                       {&url.URL{Path: secret}, want{err: keyfunc.ErrMalformed}},
		"pointer to a struct":       {&account{1}, want{err: keyfunc.ErrMalformed}},
		"struct":                    {account{1}, want{err: keyfunc.ErrMalformed}},
		"pointer to a string":       {new(string), want{err: keyfunc.ErrMalformed}},
		"map":                       {map[string]any{"sub": secret}, want{err: keyfunc.ErrMalformed}},
		"map Stringer":              {stringer{}, want{err: keyfunc.ErrMalformed}},
		"float":                     {42.0, want{err: keyfunc.ErrMalformed}},
		"float Stringer":            {celsius(1), want{err: keyfunc.ErrMalformed}},
		"bool":                      {true, want{err: keyfunc.ErrMalformed}},
		"slice of strings":          {[]string{secret}, want{err: keyfunc.ErrMalformed}},
		"func":                      {func() {}, want{err: keyfunc.ErrMalformed}},
		"TextMarshaler that fails":  {unready{}, want{err: keyfunc.ErrMalformed}},
		"array that is no Stringer": {[3]byte{}, want{err: keyfunc.ErrMalformed}},
	} {
		t.Run(name, func(t *testing.T) {
			r := get("/")
			r.values = map[any]any{"user": c.stored, userKey{}: c.stored}
			check(t, value(keyfunc.Value("user")), keyfunc.Request(r), c.want)
			check(t, value(keyfunc.Value(userKey{})), keyfunc.Request(r), c.want)
		})
	}
}

func TestValueErrorsNameTypeAndKey(t *testing.T) {
	r := get("/")
	r.values = map[any]any{"user": &account{1}}
	fails(t, keyfunc.Value("user"), keyfunc.Request(r),
		`keyfunc: value "user": malformed: a *keyfunc_test.account cannot be part of a key; store a string, an integer or a UUID`)
	_, err := keyfunc.Value(userKey{})(r)
	if err == nil || !strings.Contains(err.Error(), "keyfunc_test.userKey") {
		t.Errorf("got %v; want the key's type in it", err)
	}
}

// Names are the same in every process, and no two keys of one type share one where
// they can be told apart.
func TestValueIsNamedAfterItsKey(t *testing.T) {
	type name string
	type number int
	for _, c := range []struct {
		key  any
		want string
	}{
		{"user", "value.user=7"},
		{name("user"), "value.user=7"},
		{"a=b:c", `value.a\=b\:c=7`},
		{number(1), "value.keyfunc_test.number(1)=7"},
		{level(3), "value.keyfunc_test.level(3)=7"},
		{uint8(2), "value.uint8(2)=7"},
		{userKey{}, "value.keyfunc_test.userKey=7"},
		{&userKey{}, "value.*keyfunc_test.userKey=7"},
	} {
		r := get("/")
		r.values = map[any]any{c.key: 7}
		check(t, keyfunc.Value(c.key), keyfunc.Request(r), want{key: c.want})
	}
}
