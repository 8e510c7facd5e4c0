package keyfunc_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// typedKey is a key of a context, as programs have them.
type typedKey string

var errByHand = errors.New("of the user's own")

func byHand(keyfunc.Request) (string, error) { return "", errByHand }

func noText(keyfunc.Request) (string, error) { return "", nil }

// wrapping returns the error of f within its own.
func wrapping(f keyfunc.Func[keyfunc.Request]) keyfunc.Func[keyfunc.Request] {
	return func(r keyfunc.Request) (string, error) {
		_, err := f(r)
		return "", fmt.Errorf("of the user's own: %w", err)
	}
}

// PartName is the word of the program for what a request lacks, through all that is around it; Describe knows it before.
func TestPartName(t *testing.T) {
	secret := func() request {
		r := post(`{"n":"s3cret","items":[{"sku":null}]}`, "X-Number", "s3cret")
		r.params = map[string]string{"orderID": "", "number": "s3cret", "path": "a/../s3cret"}
		r.values = map[any]any{"userID": "", typedKey("tenant"): "", 7: ""}
		r.RemoteAddr = "s3cret"
		return r
	}
	number := keyfunc.Param("number")
	c := keyfunc.Const[keyfunc.Request]("c")
	for _, test := range []struct {
		key  keyfunc.Func[keyfunc.Request]
		want string
	}{
		{keyfunc.Param("orderID"), "orderID"},
		{keyfunc.Param("path"), "path"},
		{keyfunc.Query("id"), "id"},
		{keyfunc.Header("x-order"), "X-Order"},
		{keyfunc.Cookie("session"), "session"},
		{keyfunc.JSON("order.id"), "order.id"},
		{keyfunc.Value("userID"), "userID"},
		{keyfunc.Value(typedKey("tenant")), "tenant"},
		{keyfunc.Value(7), ""},
		{keyfunc.RemoteIP(), "remoteIP"},
		{keyfunc.Int(number), "number"},
		{keyfunc.UUID(keyfunc.JSON("n")), "n"},
		{keyfunc.Path(keyfunc.Param("orderID")), "orderID"},
		{keyfunc.Hash(keyfunc.Header("X-Order")), "X-Order"},
		{keyfunc.Scope("order", keyfunc.Int(number)), "number"},
		{keyfunc.Join(c, keyfunc.Join(c, keyfunc.Int(keyfunc.Header("X-Number")))), "X-Number"},
		{keyfunc.Join(c, wrapping(keyfunc.Query("id"))), "id"},
		{keyfunc.Named("orderID", keyfunc.Query("id")), "id"},
		{keyfunc.Int(keyfunc.Named("orderID", number)), "number"},
		{keyfunc.Named("orderID", wrapping(keyfunc.Query("id"))), "id"},
		{keyfunc.Named("orderID", byHand), "orderID"},
		{keyfunc.Named("orderID", noText), "orderID"},
		{keyfunc.Named("outer", keyfunc.Named("inner", byHand)), "inner"},
		{keyfunc.Int(keyfunc.Named("orderID", func(keyfunc.Request) (string, error) { return "s3cret", nil })), "orderID"},
		{keyfunc.Join(c, byHand), ""},
		{byHand, ""},
	} {
		_, err := test.key(secret())
		if got := keyfunc.PartName(err); err == nil || got != test.want {
			t.Errorf("%q of %v, want %q", got, err, test.want)
		}
		if names := keyfunc.Describe(test.key, nil).Names; test.want != "" && !slices.Contains(names, test.want) {
			t.Errorf("%v: Describe knows %q only", err, names)
		}
	}
	for _, test := range []struct {
		keys keyfunc.Set[keyfunc.Request]
		want string
	}{
		{keyfunc.All("account", number, keyfunc.Query("to")), "to"},
		{keyfunc.All("account", number, byHand), "account"},
		{keyfunc.JSONEach("sku", "items", "sku"), "items.*.sku"},
		{keyfunc.JSONEach("sku", "skus", ""), "skus.*"},
		{keyfunc.JSONEach("sku", "", "id"), "*.id"},
		{keyfunc.JSONEach("sku", "", ""), "*"},
	} {
		_, err := test.keys(secret())
		if got := keyfunc.PartName(err); err == nil || got != test.want {
			t.Errorf("%q of %v, want %q", got, err, test.want)
		}
		if names := keyfunc.DescribeSet(test.keys, nil).Names; !slices.Contains(names, test.want) {
			t.Errorf("%v: Describe knows %q only", err, names)
		}
	}
	if _, err := keyfunc.Payload("order.id")(task{payload: "{}"}); keyfunc.PartName(err) != "order.id" {
		t.Error(err)
	}
	if _, err := keyfunc.TaskType()(task{}); keyfunc.PartName(err) != "taskType" {
		t.Error(err)
	}
	if err := keyfunc.BufferBody(secret().Request, 1); keyfunc.PartName(err) != "body" {
		t.Error(err)
	}
	if _, err := keyfunc.JSON("n", keyfunc.MaxBytes(1))(secret()); keyfunc.PartName(err) != "body" {
		t.Error(err)
	}
	r := get("/orders/../7")
	if err := keyfunc.ValidatePath(r.Request); keyfunc.PartName(err) != "path" {
		t.Error(err)
	}
}

// There is one name of a part, which is that for clients.
func TestDescribeKnowsOneNameOfAPart(t *testing.T) {
	for want, keys := range map[string]keyfunc.Set[keyfunc.Request]{
		"id": keyfunc.All("orderID", keyfunc.Int(keyfunc.Query("id"))), "orderID": keyfunc.All("orderID", byHand),
		"items.*.sku": keyfunc.JSONEach("sku", "items", "sku"),
	} {
		if names := keyfunc.DescribeSet(keys, nil).Names; len(names) != 1 || names[0] != want {
			t.Errorf("%q, want %q", names, want)
		}
	}
}

// Named adds its name where there is none, and hides nothing.
func TestNamedKeepsErrors(t *testing.T) {
	_, bare := keyfunc.Query("id")(get("/"))
	if _, err := keyfunc.Named("orderID", keyfunc.Query("id"))(get("/")); err == nil || err.Error() != bare.Error() {
		t.Errorf("%v, and without Named %v", err, bare)
	}
	if _, err := keyfunc.Named("orderID", byHand)(get("/")); !errors.Is(err, errByHand) {
		t.Error(err)
	}
	skip := keyfunc.Optional(keyfunc.Query("id"))
	if _, err := keyfunc.Named("orderID", skip)(get("/")); err != keyfunc.ErrSkip {
		t.Error(err)
	}
}
