// Package asjson has the results of functions as JSON, and makes sure that they can be read back.
package asjson

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"time"
)

// maxResult is how many bytes of JSON a stored result may have.
const maxResult = 64 << 10

// Encode returns a result as it is stored. One that could not be read back, or only as another one, is not, nor one for which the
// error is tooLarge.
func Encode[T any](result T, tooLarge error) (string, error) {
	text, err := json.Marshal(&result) // as all of its methods have it
	if err == nil && len(text) > maxResult {
		return "", fmt.Errorf("%w: it has %d bytes of JSON, at most %d are stored", tooLarge, len(text), maxResult)
	}
	if err == nil {
		var back T
		back, err = decode[T](string(text))
		again, _ := json.Marshal(&back)
		if err == nil && (string(again) != string(text) || !isSame(reflect.ValueOf(&result), reflect.ValueOf(&back), map[looked]bool{})) {
			err = errors.New("it would be read back as another one")
		}
	}
	if err != nil {
		return "", fmt.Errorf("core: the result cannot be stored as JSON: %w", err)
	}
	return string(text), nil
}

// slowDecoding is after how long a call reads its result beside the others.
const slowDecoding = 5 * time.Second

// decoding bounds how many calls read a result at once: thousands, which one answer wakes, would leave the processors to nobody else, such
// as renewals.
var decoding = make(chan struct{}, runtime.GOMAXPROCS(0))

// Read is decode for one of many calls.
func Read[T any](ctx context.Context, text string) (T, error) {
	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
	case <-time.After(slowDecoding): // T may have methods that block
	}
	return decode[T](text)
}

// decode reads what Encode has returned, perhaps for another type.
func decode[T any](text string) (T, error) {
	var result, none T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&result)
	if err == nil && text == "null" {
		if own, _ := json.Marshal(&result); string(own) != text {
			err = fmt.Errorf("it is null, which %T cannot be", none)
		}
	}
	if err != nil {
		return none, err
	}
	return result, nil
}

var marshalers = []reflect.Type{reflect.TypeFor[json.Marshaler](), reflect.TypeFor[encoding.TextMarshaler]()}

// hasOwnJSON says that a type decides by itself what of it is JSON.
func hasOwnJSON(t reflect.Type) bool {
	return slices.ContainsFunc(marshalers, func(m reflect.Type) bool { return t.Implements(m) || reflect.PointerTo(t).Implements(m) })
}

// looked is two values that are looked at: what an UnmarshalJSON makes may lead back to them, as from a child to its parent.
type looked struct {
	was, is uintptr
	of      reflect.Type
}

// isSame says that a value is what it was before it was JSON. Unexported fields do not count, nor does whether a slice or map
// is empty or nil; what has methods of its own for JSON counts by its exported fields only, for it may have several forms.
func isSame(was, is reflect.Value, seen map[looked]bool) bool {
	if was.IsValid() != is.IsValid() || was.IsValid() && was.Type() != is.Type() {
		return false
	}
	if kind := was.Kind(); kind == reflect.Pointer || kind == reflect.Map {
		both := looked{was.Pointer(), is.Pointer(), was.Type()}
		if seen[both] {
			return true
		}
		seen[both] = true
	}
	switch kind := was.Kind(); {
	case kind == reflect.Invalid:
		return true
	case kind == reflect.Pointer || kind == reflect.Interface:
		return isSame(was.Elem(), is.Elem(), seen)
	case kind == reflect.Struct:
		for i := range was.NumField() {
			f := was.Type().Field(i)
			if (f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct) && !isSame(was.Field(i), is.Field(i), seen) {
				return false
			}
		}
		return true
	case hasOwnJSON(was.Type()):
		return true
	case kind == reflect.Slice || kind == reflect.Array:
		same := was.Len() == is.Len()
		for i := 0; same && i < was.Len(); i++ {
			same = isSame(was.Index(i), is.Index(i), seen)
		}
		return same
	case kind == reflect.Map:
		same := was.Len() == is.Len()
		for _, key := range was.MapKeys() {
			same = same && (hasOwnJSON(key.Type()) || isSame(was.MapIndex(key), is.MapIndex(key), seen))
		}
		return same
	case kind == reflect.Func || kind == reflect.Chan || kind == reflect.UnsafePointer:
		return was.IsNil() == is.IsNil()
	}
	return was.Equal(is)
}
