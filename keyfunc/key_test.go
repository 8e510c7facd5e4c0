package keyfunc_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/keyfunc"
)

func ExampleKey() {
	type orderID int64
	fmt.Println(keyfunc.Key("orderID", 42))
	fmt.Println(keyfunc.Key("orderID", orderID(42)))
	fmt.Println(keyfunc.Key("sku", "shoe:red"))
	fmt.Printf("%q\n", keyfunc.Key("sku", ""))
	// Output:
	// orderID=42
	// orderID=42
	// sku=shoe\:red
	// ""
}

// Code, routes and jobs have one key for one thing, whatever it is called.
func TestKeyIsThatOfRequestsAndJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name, value := rapid.StringMatching(`[a-zA-Z_:=\\]{1,8}`).Draw(t, "name"), rapid.StringMatching(`[^./%]{1,20}`).Draw(t, "value")
		r := get("/")
		r.params = map[string]string{name: value}
		want, err := keyfunc.Param(name)(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := keyfunc.Key(name, value); got != want {
			t.Fatalf("%q, and the route's is %q", got, want)
		}
	})
	job, err := keyfunc.Payload("orderID")(task{payload: `{"orderID": 42}`})
	if got := keyfunc.Key("orderID", 42); err != nil || got != job {
		t.Errorf("%q, and the job's is %q, %v", got, job, err)
	}
}
