package guard_test

import (
	"reflect"
	"testing"

	"github.com/latchkey-go/latchkey/internal/guard"
)

type adapterConfig = guard.AdapterConfig[guard.Request, guard.Idempotency, func(error)]

// A field that the guard is not given is one that a user sets in vain: a lock with the defaults, or a route that passes.
func TestEachFieldOfAnAdapterReachesTheGuard(t *testing.T) {
	ofAdapter := map[string]bool{"Skip": true, "OnRefused": true}
	fields := reflect.TypeFor[adapterConfig]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		var cfg adapterConfig
		set(t, name, reflect.ValueOf(&cfg).Elem().Field(i))
		got := reflect.ValueOf(cfg.Config(func(r guard.Request) guard.Request { return r }))
		var reached []string
		for _, of := range []reflect.Value{got, got.FieldByName("Forms")} {
			for j := range of.NumField() {
				if field := of.Type().Field(j).Name; field != "Forms" && !of.Field(j).IsZero() {
					reached = append(reached, field)
				}
			}
		}
		if want := !ofAdapter[name]; len(reached) > 1 || want != (len(reached) == 1 && reached[0] == name) {
			t.Errorf("%s: the guard has %q", name, reached)
		}
	}
}

// set gives a field a value other than zero.
func set(t *testing.T, name string, field reflect.Value) {
	t.Helper()
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(true)
	case reflect.Int, reflect.Int64:
		field.SetInt(1)
	case reflect.String:
		field.SetString("x")
	case reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
	case reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 1, 1))
	case reflect.Func:
		field.Set(reflect.MakeFunc(field.Type(), nil))
	default:
		t.Fatalf("%s: this test has no value for a %v", name, field.Type())
	}
}
