package keyfunc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// decodedID and decodedOrder are what handlers decode into.
type (
	decodedID struct {
		ID any `json:"id"`
	}
	decodedOrder struct {
		Order decodedID `json:"order"`
	}
)

// FuzzJSONMatchesDecoder shows that a body is either refused or decoded, into a
// struct and into a map, to the very text that is the key.
func FuzzJSONMatchesDecoder(f *testing.F) {
	for _, body := range []string{
		`{"id":1}`, `{"id":"1","ID":"2"}`, `{"order":{"id":9007199254740993}}`, `{"order":{"id":1},"order":{}}`,
		`{"id":"\ud800"}`, "{\"id\":\"\xff\"}", `{"id":1.0,"order":{"Id":true}}`, `{"id":1} 2`, "{\"\u0131d\":1}",
		`{"\u0069d":"é"}`, `{"id":null,"order":null}`, `[{"id":1}]`, "{\"id\":\"\ufffd\"}", `{"id":-0}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) { matchesDecoder(t, body) })
}

// TestJSONMatchesDecoder does the same with texts that look like JSON.
func TestJSONMatchesDecoder(t *testing.T) {
	text := func(s ...string) *rapid.Generator[string] { return rapid.SampledFrom(s) }
	name := text(`"id"`, `"id"`, `"id"`, `"ID"`, `"\u0069d"`, `"order"`, `"order"`, `"ORDER"`, `"id\ud800"`, `"x"`, `""`)
	scalar := text(`1`, `"1"`, `0`, `-0`, `18446744073709551658`, `9223372036854775808`, `1.0`, `1e2`, `9007199254740993`,
		`true`, `null`, `""`, `"é"`, `"\ud800"`, "\"\xff\"", `[]`, `[{"id":2}]`)
	object := func(value *rapid.Generator[string]) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			member := rapid.Custom(func(t *rapid.T) string {
				return name.Draw(t, "name") + text(":", " : ").Draw(t, "colon") + value.Draw(t, "value")
			})
			return "{" + strings.Join(rapid.SliceOfN(member, 0, 3).Draw(t, "members"), ",") + "}"
		})
	}
	body := object(rapid.OneOf(scalar, object(scalar)))
	rapid.Check(t, func(rt *rapid.T) {
		matchesDecoder(rt, []byte(body.Draw(rt, "body")+text("", "", " ", "\n", "1", "}").Draw(rt, "after")))
	})
}

// failer is a *testing.T or a *rapid.T.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func matchesDecoder(t failer, body []byte) {
	t.Helper()
	for _, path := range []string{"id", "order.id"} {
		got, err := value(keyfunc.Payload(path))(task{payload: string(body)})
		fromRequest, requestErr := value(keyfunc.JSON(path))(post(string(body)))
		if got != fromRequest || (err == nil) != (requestErr == nil) {
			t.Fatalf("payload %q, %v; body %q, %v", got, err, fromRequest, requestErr)
		}
		switch {
		case errors.Is(err, keyfunc.ErrMissing): // may mean unlocked, so no handler may see a value
			seesNothing(t, body, path)
		case errors.Is(err, keyfunc.ErrAmbiguous), errors.Is(err, keyfunc.ErrMalformed):
		case err != nil:
			t.Fatal(err)
		default:
			fromStruct, fromMap, err := views(body, path)
			if err != nil || got != scalarText(fromStruct) || got != scalarText(fromMap) {
				t.Fatalf("%s of %q: key %q; struct %v, map %v, %v", path, body, got, fromStruct, fromMap, err)
			}
		}
	}
}

func seesNothing(t failer, body []byte, path string) {
	t.Helper()
	fromStruct, fromMap, err := views(body, path)
	empty := func(v any) bool { return v == nil || v == "" }
	if err == nil && !(empty(fromStruct) && empty(fromMap)) {
		t.Fatalf("%s of %q is missing, yet struct %v, map %v", path, body, fromStruct, fromMap)
	}
}

// views decodes body as handlers do, with and without refusing what follows.
func views(body []byte, path string) (fromStruct, fromMap any, err error) {
	var id decodedID
	var order decodedOrder
	var object map[string]any
	into := []any{&object, &id}
	if path == "order.id" {
		into[1] = &order
	}
	err = json.Unmarshal(body, new(any))
	for _, v := range into {
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		err = errors.Join(err, dec.Decode(v))
	}
	if path == "order.id" {
		object, _ = object["order"].(map[string]any)
		return order.Order.ID, object["id"], err
	}
	return id.ID, object["id"], err
}

func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return "\x00 no scalar"
}
