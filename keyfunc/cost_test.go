package keyfunc_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// filled is a JSON text of 1 MiB: what is repeated, between a beginning and an end.
func filled(begin, repeated, end string) string {
	return begin + strings.Repeat(repeated, (1<<20-len(begin)-len(end))/len(repeated)) + end
}

// costly are bodies of 1 MiB that a client has made to cost much.
var costly = map[string]string{
	"one value":     filled(`{"items":[`, `{"sku":1},`, `{"sku":1}],"id":1}`),
	"other names":   filled(`{`, `"x":1,`, `"id":1,"items":[{"sku":1}]}`),
	"escaped names": filled(`{`, `"\u0078":1,`, `"id":1,"items":[{"sku":1}]}`),
	"upper case":    filled(`{`, `"XYZXYZ":1,`, `"id":1,"items":[{"sku":1}]}`),
	"a text":        filled(`{"x":"`, `x`, `","id":1,"items":[{"sku":1}]}`),
	"nested":        filled(`{"x":[`, `[[[[[[[[]]]]]]]],`, `1],"id":1,"items":[{"sku":1}]}`),
	"numbers":       filled(`{"x":[`, `1,`, `1],"id":1,"items":[{"sku":1}]}`),
}

// bare is an array of one value, many times.
var bare = filled(`[`, `"x",`, `"x"]`)

var (
	idOf   = keyfunc.Payload("id")
	skusOf = keyfunc.PayloadEach("sku", "items", "sku")
	eachOf = keyfunc.PayloadEach("x", "", "")
)

// payload is a task that has its payload at hand.
type payload []byte

func (payload) Type() string      { return "t" }
func (p payload) Payload() []byte { return p }

func BenchmarkJSON(b *testing.B) {
	for name, body := range costly {
		b.Run(name, func(b *testing.B) { benchmark(b, idOf, body) })
	}
}

func BenchmarkJSONEach(b *testing.B) {
	for name, body := range costly {
		b.Run(name, func(b *testing.B) { benchmark(b, skusOf, body) })
	}
	b.Run("bare values", func(b *testing.B) { benchmark(b, eachOf, bare) })
	b.Run("an order", func(b *testing.B) {
		benchmark(b, skusOf, `{"id":42,"items":[{"sku":"tea","count":2},{"sku":"cup","count":1}],"note":"by noon"}`)
	})
}

func benchmark[T any](b *testing.B, f func(keyfunc.Task) (T, error), body string) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	s := keyfunc.Task(payload(body))
	for b.Loop() {
		_, _ = f(s)
	}
}

// allocated is how many bytes f allocates for a body.
func allocated[T any](f func(keyfunc.Task) (T, error), body string) uint64 {
	var before, after runtime.MemStats
	s := keyfunc.Task(payload(body))
	runtime.ReadMemStats(&before)
	_, _ = f(s)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A key is derived before there is a lock, so nobody else bounds what a client makes it cost.
func TestABodyCostsLittle(t *testing.T) {
	for name, body := range costly {
		most := uint64(1 << 20)
		if strings.HasSuffix(name, "names") || name == "upper case" {
			most = 24 << 20 // each one is compared
		}
		if n := allocated(idOf, body); n > most {
			t.Errorf("%s: JSON allocates %d bytes", name, n)
		}
		if n := allocated(skusOf, body); n > most {
			t.Errorf("%s: JSONEach allocates %d bytes", name, n)
		}
	}
	if n := allocated(eachOf, bare); n > 1<<20 {
		t.Errorf("bare values: JSONEach allocates %d bytes", n)
	}
}

func TestElementsAreBounded(t *testing.T) {
	most := `["tea"` + strings.Repeat(`,"tea"`, 1023) + `]`
	checkSet(t, keyfunc.JSONEach("sku", "", ""), keyfunc.Request(post(most)), []string{"sku=tea"}, nil)
	_, err := keyfunc.JSONEach("sku", "", "")(post(most[:len(most)-1] + `,"tea"]`))
	if want := "keyfunc: JSON array: malformed: more than 1024 elements"; err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	_, err = eachOf(payload(most[:len(most)-1] + `,"tea"]`))
	if want := "keyfunc: payload array: malformed: more than 1024 elements"; err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	// Others are not looked at.
	check(t, value(keyfunc.Payload("2000")), keyfunc.Task(payload("["+strings.Repeat(`"tea",`, 2000)+`"cup"]`)), want{key: "cup"})
}

// After the first mistake nothing is read; that something is missing is no mistake before the end.
func TestABodyIsReadToTheFirstMistake(t *testing.T) {
	for body, kind := range map[string]error{
		`{"items":[{"sku":1},{"sku":1,"sku":2}],`:        keyfunc.ErrRepeated,
		`{"items":[{"sku":1},{"SKU":1}],`:                keyfunc.ErrLetterCase,
		`{"items":[{"sku":1}],"items":`:                  keyfunc.ErrRepeated,
		`{"items":[{}],`:                                 keyfunc.ErrMalformed,
		`{"items":[{},{"sku":1.5}]}`:                     keyfunc.ErrMalformed,
		`{"items":[null,{"sku":1,"sku":2}]}`:             keyfunc.ErrRepeated,
		`{"items":null,"ITEMS":[]}`:                      keyfunc.ErrLetterCase,
		`{"items":[{"sku":1},{"sku":null},{"sku":"2"}]}`: keyfunc.ErrMissing,
		`{"items":nul}`:                                  keyfunc.ErrMalformed,
		`{"items":[{"sku":"` + "\xff" + `"}]}`:           keyfunc.ErrMalformed,
	} {
		checkSet(t, skusOf, keyfunc.Task(payload(body)), nil, kind)
		if _, err := skusOf(payload(body)); kind == keyfunc.ErrMalformed && errors.Is(err, keyfunc.ErrMissing) {
			t.Errorf("%s: %v", body, err)
		}
	}
}
