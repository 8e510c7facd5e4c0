package keyfunc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

func ExampleDescribe() {
	key := keyfunc.Join(
		keyfunc.Const[keyfunc.Request]("cart"),
		keyfunc.Value("userID"),
		keyfunc.Optional(keyfunc.Int(keyfunc.Param("item"))))

	d := keyfunc.Describe(key, nil)
	fmt.Println(d.Name, d.Params, d.Optional)
	fmt.Println(strings.Join(d.Parts, " and "))

	d = keyfunc.Describe(keyfunc.Param("orderID"), func(param string) bool { return param == "id" }) // of the route /orders/{id}
	fmt.Println(d.Err)
	// Output:
	// cart:value.userID:item [item] true
	// value "userID" and path parameter "item"
	// keyfunc: path parameter "orderID": not set up: the route does not declare it
}

func TestDescribe(t *testing.T) {
	type described = struct {
		name, parts, params string
		optional            bool
	}
	template, err := keyfunc.Template("order:{param.orderID}:user:{header.X-User-ID}")
	if err != nil {
		t.Fatal(err)
	}
	p := keyfunc.Param("p")
	for name, c := range map[string]struct {
		f    keyfunc.Func[keyfunc.Request]
		want described
	}{
		"Param":    {p, described{"p", `path parameter "p"`, "p", false}},
		"Query":    {keyfunc.Query("q"), described{"q", `query parameter "q"`, "", false}},
		"Header":   {keyfunc.Header("x-h"), described{"X-H", `header "X-H"`, "", false}},
		"Host":     {keyfunc.Header("host"), described{"Host", `header "Host"`, "", false}},
		"Cookie":   {keyfunc.Cookie("c"), described{"cookie.c", `cookie "c"`, "", false}},
		"JSON":     {keyfunc.JSON("a.b"), described{"a.b", `JSON field "a.b"`, "", false}},
		"RemoteIP": {keyfunc.RemoteIP(), described{"remoteIP", "remote address", "", false}},
		"Const":    {keyfunc.Const[keyfunc.Request]("all"), described{"all", "", "", false}},
		"Int":      {keyfunc.Int(p), described{"p", `path parameter "p"`, "p", false}},
		"UUID":     {keyfunc.UUID(p), described{"p", `path parameter "p"`, "p", false}},
		"Hash":     {keyfunc.Hash(p), described{"p", `path parameter "p"`, "p", false}},
		"Path":     {keyfunc.Path(p), described{"p", `path parameter "p"`, "p", false}},
		"Named":    {keyfunc.Named("orderID", keyfunc.Int(p)), described{"orderID", `path parameter "p"`, "p", false}},
		"Scope":    {keyfunc.Scope("order", p), described{"order:p", `path parameter "p"`, "p", false}},
		"Optional": {keyfunc.Optional(keyfunc.Header("x-h")), described{"X-H", `header "X-H"`, "", true}},
		"Join": {
			keyfunc.Join(keyfunc.Optional(keyfunc.Query("q")), p, p),
			described{"q:p:p", `query parameter "q"|path parameter "p"`, "p", true}},
		"Template": {
			template,
			described{"order:{param.orderID}:user:{header.X-User-ID}", `path parameter "orderID"|header "X-User-Id"`, "orderID", false}},
		"by hand": {key("x"), described{"", "a key function", "", false}},
		"by hand, a": {
			func(r keyfunc.Request) (string, error) { v, _ := r.Param("a"); return v, nil },
			described{"", "a key function", "a", false}},
		"by hand, p": {func(r keyfunc.Request) (string, error) { return p(r) }, described{"p", `path parameter "p"`, "p", false}},
		"joined":     {keyfunc.Join(key("x"), p), described{"*:p", `a key function|path parameter "p"`, "p", false}},
		"named":      {keyfunc.Named("tenant", key("")), described{"tenant", "a key function", "", false}},
		"fails":      {keyfunc.Join(p, failing(errOwn)), described{"p:*", `path parameter "p"|a key function`, "p", false}},
		"skips":      {failing(keyfunc.ErrSkip), described{"", "a key function", "", true}},
		"panics": {
			func(r keyfunc.Request) (string, error) { return r.Value("user").(string), nil },
			described{"", "a key function", "", false}},
	} {
		d := keyfunc.Describe(c.f, nil)
		if got := (described{d.Name, strings.Join(d.Parts, "|"), strings.Join(d.Params, "|"), d.Optional}); got != c.want || d.Err != nil {
			t.Errorf("%s: %+v, %v; want %+v", name, got, d.Err, c.want)
		}
	}
	job := keyfunc.Describe(keyfunc.Join(keyfunc.TaskType(), keyfunc.Int(keyfunc.Payload("order.id"))), nil)
	if job.Name != "taskType:order.id" || strings.Join(job.Parts, "|") != `task type|payload field "order.id"` {
		t.Errorf("a job: %+v", job)
	}
	if other := keyfunc.Describe(func(int) (string, error) { t.Error("called"); return "", nil }, nil); other.Parts != nil {
		t.Errorf("neither request nor task: %+v", other)
	}
}

func TestDescribeForARoute(t *testing.T) {
	declares := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	p, q := keyfunc.Param("p"), keyfunc.Param("q")
	either := func(r keyfunc.Request) (string, error) {
		if key, err := p(r); err == nil {
			return key, nil
		}
		return q(r)
	}
	for name, c := range map[string]struct {
		f        keyfunc.Func[keyfunc.Request]
		declares func(string) bool
		want     error
	}{
		"declared":         {keyfunc.Join(p, q), declares("p", "q"), nil},
		"not":              {keyfunc.Join(p, q), declares("p"), keyfunc.ErrNotSetUp},
		"converted":        {keyfunc.Named("x", keyfunc.Int(q)), declares("p"), keyfunc.ErrNotSetUp},
		"optional":         {keyfunc.Optional(keyfunc.Int(q)), declares("p"), keyfunc.ErrSkip},
		"joined, optional": {keyfunc.Join(keyfunc.Optional(q), p), declares("p"), keyfunc.ErrSkip},
		"one of two":       {either, declares("q"), nil},
		"by hand":          {failing(keyfunc.ErrNotSetUp), declares("p"), nil},
		"none of two":      {either, declares(), keyfunc.ErrNotSetUp},
	} {
		if d := keyfunc.Describe(c.f, c.declares); !errors.Is(d.Err, c.want) {
			t.Errorf("%s: %v; want %v", name, d.Err, c.want)
		}
	}
}
