package keyfunc

import (
	"errors"
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
// [ErrMissing] if one element would, with ErrMissing also when the array has no elements,
// and with ErrMalformed when it has more than 1024 of them, or more than 64 different values. It
// panics when name is empty, or a path or an option is bad.
func JSONEach(name, array, field string, opts ...JSONOption) Set[Request] {
	f := newEach("JSONEach", "JSON", name, array, field)
	b := newJSONReader(f, opts)
	return eachOf(name, f, func(r Request) ([]string, error) { return from(b, r.HTTP(), f.all) })
}

// PayloadEach takes a field of every element of an array in a task's JSON payload, as
// [JSONEach] does of a body. A payload is in memory already and has no limit.
func PayloadEach(name, array, field string) Set[Task] {
	f := newEach("PayloadEach", "payload", name, array, field)
	return eachOf(name, f, func(t Task) ([]string, error) { return f.all(t.Payload()) })
}

func newEach(constructor, where, name, array, path string) field {
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
	f := field{part: where + " array", steps: append(append(steps(array), step{isIndex: true, every: true}), steps(path)...)}
	if array != "" {
		f.part += " " + strconv.Quote(array)
	}
	if path != "" {
		f.part = where + " field " + strconv.Quote(path) + " in each of " + f.part
	}
	return f
}

func eachOf[S any](name string, f field, values func(S) ([]string, error)) Set[S] {
	return func(s S) ([]string, error) {
		if n := notesOf(s); n != nil {
			n.part(f.part)
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
