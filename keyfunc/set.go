package keyfunc

import (
	"errors"
	"strconv"
)

// Set derives several keys from S, a [Request] or a [Task]: the work needs the locks of
// all of them, as LockAll of package core takes them.
//
// It returns at least one key, none of them empty, or an error as a [Func] does. Order and
// repetition do not matter. What else is said of a Func counts for a Set as well.
type Set[S any] func(S) ([]string, error)

// All is the keys of several parts that are of one kind, such as the two accounts of a
// transfer. They have one name, whatever the parts are called: the keys of
//
//	All("account", Param("from"), JSON("to"))
//
// are "account=1" and "account=2", for a transfer from 1 to 2 and for one from 2 to 1, and each
// is that of ByParam("account") elsewhere. Several parts become the value of one, as with
// [Named].
//
// It fails as the first part does that fails. A part that is [Optional] and missing is left
// out; the others are still locked. When none is left it fails with [ErrSkip]. It
// panics when name is empty, or there is no part, or one is nil.
func All[S any](name string, parts ...Func[S]) Set[S] {
	if name == "" || len(parts) == 0 {
		panic(`keyfunc: All needs a name and at least one part, such as All("account", keyfunc.JSON("from"), keyfunc.JSON("to"))`)
	}
	named := make([]Func[S], len(parts))
	for i, f := range parts {
		mustFunc("All", f)
		named[i] = Named(name, f)
	}
	return func(s S) ([]string, error) {
		var keys []string
		var skip error
		for i, f := range named {
			key, err := f(s)
			switch {
			case errors.Is(err, ErrSkip):
				skip = err
			case err != nil:
				return nil, inside(nth(i), err)
			default:
				keys = append(keys, key)
			}
		}
		if keys == nil {
			return nil, skip
		}
		return keys, nil
	}
}

// DescribeSet is [Describe] for several keys: Name is that of the first.
func DescribeSet[S any](keys Set[S], declares func(param string) bool) Description {
	return Describe(func(s S) (string, error) {
		all, err := keys(s)
		if err != nil || len(all) == 0 {
			return "", err
		}
		return all[0], nil
	}, declares)
}

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
	return eachOf(name, f, func(r Request) ([]string, error) { return b.read(r.HTTP()) })
}

// PayloadEach takes a field of every element of an array in a task's JSON payload, as
// [JSONEach] does of a body. A payload is in memory already and has no limit.
func PayloadEach(name, array, field string) Set[Task] {
	f := newEach("PayloadEach", "payload", name, array, field)
	return eachOf(name, f, func(t Task) ([]string, error) { return f.all(t.Payload()) })
}

func newEach(constructor, where, name, array, path string) field {
	must := func(err error) {
		panic("keyfunc: " + constructor + " needs a name and two paths of field names, such as " +
			constructor + `("sku", "items", "sku"): ` + err.Error())
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
	f := field{part: part{where + " array", "*"}, steps: append(append(steps(array), step{isIndex: true, every: true}), steps(path)...)}
	if array != "" {
		f.part = part{f.part.text + " " + strconv.Quote(array), array + ".*"}
	}
	if path != "" {
		f.part = part{where + " field " + strconv.Quote(path) + " in each of " + f.part.text, f.part.name + "." + path}
	}
	return f
}

func eachOf[S any](name string, f field, values func(S) ([]string, error)) Set[S] {
	return func(s S) ([]string, error) {
		if n := notesOf(s); n != nil {
			n.part(f.part)
			key, err := result(s, onePart(name, ""))
			return []string{key}, err
		}
		keys, err := values(s)
		for i, value := range keys {
			keys[i] = onePart(name, value).key
		}
		return keys, err
	}
}
