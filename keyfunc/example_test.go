package keyfunc_test

import (
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"

	"github.com/latchkey-go/latchkey/keyfunc"
)

func ExampleParam() {
	r := get("/orders/42/pay")
	r.params = map[string]string{"orderID": "42"} // the router matched /orders/{orderID}/pay

	fmt.Println(keyfunc.Param("orderID")(r))
	fmt.Println(keyfunc.Param("order")(r))
	// Output:
	// orderID=42 <nil>
	//  keyfunc: path parameter "order": not set up: the route does not declare it
}

func ExampleQuery() {
	id := keyfunc.Query("id")

	fmt.Println(id(get("/items?id=42")))
	fmt.Println(id(get("/items?id=42&id=43")))
	fmt.Println(id(get("/items?ID=42"))) // which echo's Bind would take
	fmt.Println(id(get("/items?id=")))
	// Output:
	// id=42 <nil>
	//  keyfunc: query parameter "id": given more than once
	//  keyfunc: query parameter "id": its name is there in another letter case
	//  keyfunc: query parameter "id": missing
}

func ExampleHeader() {
	fmt.Println(keyfunc.Header("Idempotency-Key")(get("/", "idempotency-key", "e7f1")))
	// Output: Idempotency-Key=e7f1 <nil>
}

func ExampleCookie() {
	fmt.Println(keyfunc.Cookie("session")(get("/", "Cookie", "lang=en; session=e7f1")))
	// Output: cookie.session=e7f1 <nil>
}

func ExampleJSON() {
	id := keyfunc.JSON("order.id")

	r := post(`{"order": {"id": 9007199254740993}}`)
	fmt.Println(id(r))
	body, _ := io.ReadAll(r.Body) // as the handler does
	fmt.Println(string(body))

	fmt.Println(id(post(`{"order": {"id": 42, "ID": 43}}`)))
	// Output:
	// order.id=9007199254740993 <nil>
	// {"order": {"id": 9007199254740993}}
	//  keyfunc: JSON field "order.id": its name is there in another letter case
}

func ExampleMediaType() {
	id := keyfunc.JSON("data.id", keyfunc.MediaType("application/vnd.api+json")) // for a handler that decodes it itself

	fmt.Println(id(post(`{"data": {"id": "42"}}`, "Content-Type", "application/vnd.api+json")))
	// Output: data.id=42 <nil>
}

func ExampleMaxBytes() {
	_, err := keyfunc.JSON("id", keyfunc.MaxBytes(16))(post(`{"id": 42, "note": "too long"}`))
	fmt.Println(errors.Is(err, keyfunc.ErrTooLarge))
	// Output: true
}

func ExampleValue() {
	r := get("/cart")
	r.values = map[any]any{"userID": 7} // the authentication middleware stored it

	fmt.Println(keyfunc.Value("userID")(r))
	// Output: value.userID=7 <nil>
}

func ExampleRemoteIP() {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = "[::ffff:192.0.2.1]:52100"
	r.Header.Set("X-Forwarded-For", "203.0.113.9") // anybody can send that

	fmt.Println(keyfunc.RemoteIP()(request{Request: r}))
	// Output: remoteIP=192.0.2.1 <nil>
}

func ExampleConst() {
	nightly := keyfunc.Const[keyfunc.Task]("nightly-report")
	fmt.Println(nightly(task{kind: "report"}))
	// Output: nightly-report <nil>
}

func ExampleJoin() {
	key := keyfunc.Join(keyfunc.Const[keyfunc.Request]("sum"), keyfunc.Query("a"), keyfunc.Query("b"))

	fmt.Println(key(get("/?a=1&b=2")))
	fmt.Println(key(get("/?a=1:b=2&b=3")))
	fmt.Println(key(get("/?a=1&b=b=2:3")))
	fmt.Println(key(get("/?a=1")))
	// Output:
	// sum:a=1:b=2 <nil>
	// sum:a=1\:b\=2:b=3 <nil>
	// sum:a=1:b=b\=2\:3 <nil>
	//  keyfunc: part 3, query parameter "b": missing
}

func ExampleScope() {
	fmt.Println(keyfunc.Scope("order", keyfunc.Query("id"))(get("/?id=42")))
	fmt.Println(keyfunc.Scope("user", keyfunc.Query("id"))(get("/?id=42")))
	// Output:
	// order:id=42 <nil>
	// user:id=42 <nil>
}

// The key that ByParam("orderID") has, where the parameter has another name.
func ExampleNamed() {
	fmt.Println(keyfunc.Named("orderID", keyfunc.Int(keyfunc.Query("id")))(get("/?id=042")))
	// Output: orderID=42 <nil>
}

func ExampleInt() {
	id := keyfunc.Int(keyfunc.Query("id"))

	fmt.Println(id(get("/?id=42")))
	fmt.Println(id(get("/?id=042")))
	fmt.Println(id(get("/?id=%2B42")))
	fmt.Println(id(get("/?id=0x2a")))
	// Output:
	// id=42 <nil>
	// id=42 <nil>
	// id=42 <nil>
	//  keyfunc: query parameter "id", Int: malformed: not a decimal integer of at most 64 digits
}

func ExampleUUID() {
	id := keyfunc.UUID(keyfunc.Query("id"))

	fmt.Println(id(get("/?id=018F3C9A-0000-7000-8000-000000000001")))
	fmt.Println(id(get("/?id=018f3c9a0000700080000000000000ff")))
	// Output:
	// id=018f3c9a-0000-7000-8000-000000000001 <nil>
	// id=018f3c9a-0000-7000-8000-0000000000ff <nil>
}

func ExampleHash() {
	key, _ := keyfunc.Hash(keyfunc.Header("Authorization"))(get("/", "Authorization", "Bearer "+strings.Repeat("x", 5000)))
	fmt.Println(len(key), key[:len("Authorization=")])
	// Output: 78 Authorization=
}

func ExampleOptional() {
	key := keyfunc.Optional(keyfunc.Query("id"))

	_, err := key(get("/"))
	fmt.Println(errors.Is(err, keyfunc.ErrSkip)) // runs without a lock
	_, err = key(get("/?id=1&id=2"))
	fmt.Println(errors.Is(err, keyfunc.ErrSkip)) // is refused
	// Output:
	// true
	// false
}

func ExamplePath() {
	file := keyfunc.Path(keyfunc.Param("path"))

	r := get("/files/x/../a%2Fb")
	for _, spelling := range []string{"a/b", "a//b/", "x/../a%2Fb", "../b"} {
		r.params = map[string]string{"path": spelling} // of the route /files/{path...}
		fmt.Println(file(r))
	}
	// Output:
	// path=a/b <nil>
	// path=a/b <nil>
	// path=a/b <nil>
	//  keyfunc: path parameter "path", Path: a path with escapes, or with empty or dot segments: it leads out of where it begins
}

func ExampleUnescaped() {
	r := get("/users/%61nn")
	r.params = map[string]string{"user": "%61nn"} // as chi and echo hand it out

	fmt.Println(keyfunc.Unescaped(keyfunc.Param("user"))(r))
	fmt.Println(keyfunc.Param("user")(r))
	// Output:
	// user=ann <nil>
	//  keyfunc: path parameter "user": a path with escapes, or with empty or dot segments: it has an escape; Unescaped or Path says how to read it
}

func ExampleTemplate() {
	key, err := keyfunc.Template("order:{query.id}:user:{header.X-User-ID}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key(get("/?id=42", "X-User-ID", "7")))
	fmt.Println(key(get("/?id=42:user:7", "X-User-ID", "8")))

	_, err = keyfunc.Template("order:{parm.id}")
	fmt.Println(err)
	// Output:
	// order:42:user:7 <nil>
	// order:42\:user\:7:user:8 <nil>
	// keyfunc: template "order:{parm.id}": unknown source "parm" at 7; a placeholder is one of {param.orderID}, {query.id}, {header.X-User-ID}, {cookie.session}, {json.order.id}, {value.userID}, {ip}
}

func ExampleTaskTemplate() {
	key, err := keyfunc.TaskTemplate("{type}:{payload.order.id}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key(task{"charge", `{"order": {"id": "A-17"}}`}))
	// Output: charge:A-17 <nil>
}

func ExamplePayload() {
	fmt.Println(keyfunc.Payload("orderID")(task{"charge", `{"orderID": 42}`}))
	// Output: orderID=42 <nil>
}

func ExampleTaskType() {
	fmt.Println(keyfunc.TaskType()(task{kind: "charge"}))
	// Output: taskType=charge <nil>
}
