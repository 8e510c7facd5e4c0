package keyfunc

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
)

// maxEach is how many keys there may be: as many as LockAll of package core takes.
const maxEach = 64

// JSONEach takes a field of every element of an array in the request's JSON body, such as the
// items of an order: JSONEach("sku", "items", "sku") has the keys "sku=tea" and "sku=cup" for
//
//	{"items": [{"sku": "tea", "count": 2}, {"sku": "cup"}]}
//
// name is that of the keys; array and field are paths as in [JSON], array from the beginning
// of the body and field from each element. An empty array is a body that is an array itself,
// an empty field an element that is the value. What is there several times is one key.
//
// It reads the body, blocks, and fails as JSON does: with [ErrAmbiguous], [ErrMalformed] or
// [ErrMissing] as soon as one element would, with ErrMissing also when the array has no elements,
// and with ErrMalformed when it has more than 64 different values. It panics when name is empty,
// or a path or an option is bad.
func JSONEach(name, array, field string, opts ...JSONOption) Set[Request] {
	e := newEach("JSONEach", "JSON", name, array, field)
	b := newJSONReader(e.field, opts)
	return eachOf(name, e, func(r Request) ([]string, error) { return from(b, r.HTTP(), e.in) })
}

// PayloadEach takes a field of every element of an array in a task's JSON payload, as
// [JSONEach] does of a body. A payload is in memory already and has no limit.
func PayloadEach(name, array, field string) Set[Task] {
	e := newEach("PayloadEach", "payload", name, array, field)
	return eachOf(name, e, func(t Task) ([]string, error) { return e.in(t.Payload()) })
}

// each is a scalar in all elements of an array.
type each struct {
	field        // the array
	rest  []step // from an element on
}

func newEach(constructor, where, name, array, path string) each {
	must := func(err error) {
		panic("keyfunc: " + constructor + " needs a name and two paths of field names, such as " + constructor + `("sku", "items", "sku"): ` + err.Error())
	}
	if name == "" {
		must(errors.New("the name is empty"))
	}
	steps := func(path string) []step {
		if path == "" {
			return nil
		}
		f, err := parseField("", path)
		if err != nil {
			must(err)
		}
		return f.steps
	}
	e := each{field: field{part: where + " array", steps: steps(array)}, rest: steps(path)}
	if array != "" {
		e.part += " " + strconv.Quote(array)
	}
	if path != "" {
		e.part = where + " field " + strconv.Quote(path) + " in each of " + e.part
	}
	return e
}

// in returns the texts in doc, each once.
func (e each) in(doc []byte) ([]string, error) {
	array, err := e.find(doc)
	if err != nil {
		return nil, err
	}
	dec, err := e.open(array, '[')
	if err != nil {
		return nil, err
	}
	var values []string
	for dec.More() {
		var at json.RawMessage
		if err := dec.Decode(&at); err != nil {
			return nil, e.invalid(err)
		}
		at, err := e.walk(at, e.rest)
		if err != nil {
			return nil, err
		}
		value, err := e.scalar(at)
		if err != nil {
			return nil, err
		}
		if slices.Contains(values, value) {
			continue
		}
		if values = append(values, value); len(values) > maxEach {
			return nil, e.fail(ErrMalformed, "more than "+strconv.Itoa(maxEach)+" different ones")
		}
	}
	if values == nil {
		return nil, e.fail(ErrMissing, "the array is empty")
	}
	return values, nil
}

func eachOf[S any](name string, e each, values func(S) ([]string, error)) Set[S] {
	return func(s S) ([]string, error) {
		if n := notesOf(s); n != nil {
			n.part(e.part)
			key, err := tell(s, onePart(name, ""))
			return []string{key}, err
		}
		keys, err := values(s)
		for i, value := range keys {
			keys[i] = onePart(name, value).key
		}
		return keys, err
	}
}
