package keyfunc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

func ExampleAll() {
	accounts := keyfunc.All("account", keyfunc.Int(keyfunc.JSON("from")), keyfunc.Int(keyfunc.JSON("to")))

	fmt.Println(accounts(post(`{"from": 1, "to": 2}`)))
	fmt.Println(accounts(post(`{"from": "02", "to": "01"}`)))
	fmt.Println(accounts(post(`{"from": 1}`)))
	fmt.Println(keyfunc.Key("account", 1))
	// Output:
	// [account=1 account=2] <nil>
	// [account=2 account=1] <nil>
	// [] keyfunc: part 2, JSON field "to": missing
	// account=1
}

func ExampleJSONEach() {
	items := keyfunc.JSONEach("sku", "items", "sku")

	fmt.Println(items(post(`{"items": [{"sku": "tea", "count": 2}, {"sku": "cup"}, {"sku": "tea"}]}`)))
	fmt.Println(items(post(`{"items": []}`)))
	fmt.Println(items(post(`{"items": [{"sku": "tea", "SKU": "cup"}]}`)))
	fmt.Println(keyfunc.JSONEach("sku", "", "")(post(`["tea", "cup"]`)))
	// Output:
	// [sku=tea sku=cup] <nil>
	// [] keyfunc: JSON field "sku" in each of JSON array "items": missing: the array is empty
	// [] keyfunc: JSON field "sku" in each of JSON array "items": its name is there in another letter case
	// [sku=tea sku=cup] <nil>
}

func ExamplePayloadEach() {
	fmt.Println(keyfunc.PayloadEach("sku", "order.items", "product.sku")(
		task{"ship", `{"order": {"items": [{"product": {"sku": "a:b"}}, {"product": {"sku": 7}}]}}`}))
	// Output: [sku=a\:b sku=7] <nil>
}

func ExampleDescribeSet() {
	d := keyfunc.DescribeSet(keyfunc.All("account", keyfunc.Param("id"), keyfunc.JSON("to")), nil)
	fmt.Println(d.Name, d.Params)
	fmt.Println(strings.Join(d.Parts, " and "))
	// Output:
	// account [id]
	// path parameter "id" and JSON field "to"
}

func checkSet[S any](t *testing.T, f keyfunc.Set[S], s S, keys []string, kind error) {
	t.Helper()
	got, err := f(s)
	if !slices.Equal(got, keys) || !errors.Is(err, kind) {
		t.Errorf("got %q, %v; want %q, %v", got, err, keys, kind)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("%v shows what a client has sent", err)
	}
}

func TestAll(t *testing.T) {
	from, to := keyfunc.Query("from"), keyfunc.Query("to")
	for target, w := range map[string]struct {
		keys []string
		err  error
	}{
		"/?from=1&to=2":      {[]string{"account=1", "account=2"}, nil},
		"/?from=1&to=1":      {[]string{"account=1", "account=1"}, nil},
		"/?from=a:b&to=a=b":  {[]string{`account=a\:b`, `account=a\=b`}, nil},
		"/?from=1":           {nil, keyfunc.ErrMissing},
		"/?from=1&to=2&to=3": {nil, keyfunc.ErrAmbiguous},
	} {
		checkSet(t, keyfunc.All("account", from, to), keyfunc.Request(get(target)), w.keys, w.err)
	}
	several := keyfunc.All("a", keyfunc.Join(from, to), func(keyfunc.Request) (string, error) { return "x=y", nil })
	checkSet(t, several, keyfunc.Request(get("/?from=1&to=2")), []string{`a=from\=1\:to\=2`, `a=x\=y`}, nil)

	// Who leaves a part out does not get past the lock of the others.
	optional := keyfunc.All("account", from, keyfunc.Optional(to))
	checkSet(t, optional, keyfunc.Request(get("/?from=1")), []string{"account=1"}, nil)
	checkSet(t, optional, keyfunc.Request(get("/?to=1")), nil, keyfunc.ErrMissing)
	checkSet(t, keyfunc.All("account", keyfunc.Optional(from), keyfunc.Optional(to)), keyfunc.Request(get("/")), nil, keyfunc.ErrSkip)
	checkSet(t, keyfunc.All("account", keyfunc.Optional(from), to), keyfunc.Request(get("/?to=1&to=s3cret")), nil, keyfunc.ErrAmbiguous)

	for _, call := range []func(){
		func() { keyfunc.All("", from) }, func() { keyfunc.All[keyfunc.Request]("account") }, func() { keyfunc.All("account", from, nil) },
	} {
		panics(t, call, "keyfunc: All needs")
	}
}

// What JSON refuses in one place, JSONEach refuses in each.
func TestJSONEach(t *testing.T) {
	var many, tooMany []string
	for i := range 65 {
		tooMany = append(tooMany, fmt.Sprintf(`{"id":%d}`, i))
	}
	many = append(tooMany[:64:64], tooMany[:64]...)
	f := keyfunc.JSONEach("n", "a.list", "id")
	for body, kind := range map[string]error{
		``: keyfunc.ErrMissing, `{}`: keyfunc.ErrMissing, `{"a":null}`: keyfunc.ErrMissing,
		`{"a":{"list":null}}`: keyfunc.ErrMissing, `{"a":{"list":[]}}`: keyfunc.ErrMissing,
		`{"a":{"list":[{"id":1},{}]}}`:                                       keyfunc.ErrMissing,
		`{"a":{"list":[{"id":1},null]}}`:                                     keyfunc.ErrMissing,
		`{"a":{"list":[{"id":1},{"id":""}]}}`:                                keyfunc.ErrMissing,
		`{"a":{"list":[{"id":1}],"list":[{"id":"s3cret"}]}}`:                 keyfunc.ErrRepeated,
		`{"a":{"list":[{"id":1}],"LIST":[{"id":"s3cret"}]}}`:                 keyfunc.ErrLetterCase,
		`{"a":{"list":[{"id":1}]},"A":{}}`:                                   keyfunc.ErrLetterCase,
		`{"a":{"list":[{"id":1},{"id":2,"id":"s3cret"}]}}`:                   keyfunc.ErrRepeated,
		`{"a":{"list":[{"id":1},{"id":2,"Id":"s3cret"}]}}`:                   keyfunc.ErrLetterCase,
		`{"a":{"list":{"id":1}}}`:                                            keyfunc.ErrMalformed,
		`{"a":{"list":"s3cret"}}`:                                            keyfunc.ErrMalformed,
		`{"a":{"list":[1]}}`:                                                 keyfunc.ErrMalformed,
		`{"a":{"list":[{"id":1.5}]}}`:                                        keyfunc.ErrMalformed,
		`{"a":{"list":[{"id":[1]}]}}`:                                        keyfunc.ErrMalformed,
		`{"a":{"list":[{"id":1}]}} s3cret`:                                   keyfunc.ErrMalformed,
		`{"a":{"list":[` + strings.Join(tooMany, ",") + `]}}`:                keyfunc.ErrMalformed,
		`{"a":{"list":[{"id":1}]},"x":"` + strings.Repeat("x", 1<<20) + `"}`: keyfunc.ErrTooLarge,
	} {
		checkSet(t, f, keyfunc.Request(post(body)), nil, kind)
		if kind != keyfunc.ErrTooLarge {
			checkSet(t, keyfunc.PayloadEach("n", "a.list", "id"), keyfunc.Task(task{payload: body}), nil, kind)
		}
	}
	checkSet(t, f, keyfunc.Request(post(`{"a":{"list":[{"id":1}]}}`, "Content-Type", "text/plain")), nil, keyfunc.ErrNotJSON)
	if keys, err := f(post(`{"a":{"list":[` + strings.Join(many, ",") + `]}}`)); len(keys) != 64 || err != nil {
		t.Errorf("%d keys, %v", len(keys), err)
	}

	body := `{"a":{"list":[{"id":"x:y"},{"id":7},{"id":"7"},{"id":true}]}}`
	r := post(body, "Content-Type", "application/vnd.api+json")
	checkSet(t, keyfunc.JSONEach("n", "a.list", "id", keyfunc.MediaType("application/vnd.api+json")), keyfunc.Request(r),
		[]string{`n=x\:y`, "n=7", "n=true"}, nil)
	if left := readAll(t, r.Body); left != body {
		t.Errorf("the handler reads %q", left)
	}
	checkSet(t, keyfunc.JSONEach("n", "0", "1.x"), keyfunc.Request(post(`[[[0,{"x":5}]]]`)), []string{"n=5"}, nil)

	for _, call := range []func(){
		func() { keyfunc.JSONEach("", "a", "b") }, func() { keyfunc.JSONEach("n", "a.", "b") }, func() { keyfunc.JSONEach("n", "a", ".b") },
	} {
		panics(t, call, `JSONEach("sku", "items", "sku")`)
	}
	panics(t, func() { keyfunc.PayloadEach("", "a", "b") }, `PayloadEach("sku", "items", "sku")`)
}

func TestDescribeSet(t *testing.T) {
	each := keyfunc.JSONEach("sku", "items", "sku")
	d := keyfunc.DescribeSet(each, nil)
	if d.Name != "sku" || !slices.Equal(d.Parts, []string{`JSON field "sku" in each of JSON array "items"`}) {
		t.Errorf("%+v", d)
	}
	d = keyfunc.DescribeSet(keyfunc.PayloadEach("sku", "items", ""), nil)
	if d.Name != "sku" || !slices.Equal(d.Parts, []string{`payload array "items"`}) {
		t.Errorf("%+v", d)
	}
	all := keyfunc.All("account", keyfunc.Param("from"), keyfunc.Optional(keyfunc.Param("to")))
	declares := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	if d := keyfunc.DescribeSet(all, declares("from")); d.Err != nil || !d.Optional || !slices.Equal(d.Params, []string{"from", "to"}) {
		t.Errorf("%+v", d)
	}
	if d := keyfunc.DescribeSet(all, declares("to")); !errors.Is(d.Err, keyfunc.ErrNotSetUp) || errors.Is(d.Err, keyfunc.ErrSkip) {
		t.Errorf("%+v", d)
	}
	byHand := func(keyfunc.Request) ([]string, error) { panic("it has no body") }
	if d := keyfunc.DescribeSet(byHand, nil); d.Name != "" || !slices.Equal(d.Parts, []string{"a key function"}) {
		t.Errorf("%+v", d)
	}
	none := func(keyfunc.Request) ([]string, error) { return nil, nil }
	if d := keyfunc.DescribeSet(none, nil); !slices.Equal(d.Parts, []string{"a key function"}) {
		t.Errorf("%+v", d)
	}
}
