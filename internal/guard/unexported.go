package guard

import (
	"reflect"
	"unsafe"
)

// Unexported returns a field of a struct that reflect does not hand out because it is not
// exported; nil when v has no such field, or one of another type. v must be addressable.
func Unexported[T any](v reflect.Value, field string) *T {
	f := v.FieldByName(field)
	if !f.IsValid() || f.Type() != reflect.TypeFor[T]() {
		return nil
	}
	return (*T)(unsafe.Pointer(f.UnsafeAddr()))
}
