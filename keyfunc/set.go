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
// out; the others are locked nevertheless. When none is left it fails with [ErrSkip]. It
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
				return nil, inside("part "+strconv.Itoa(i+1), err)
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
