package guard

import (
	"strconv"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// ByParam is the configuration of a guard by path parameter: of exactly the
// routes that declare it. It panics when no parameter can have that name.
func ByParam(adapter, name string) Config {
	mustName(adapter, "ByParam(%s)", name)
	return Config{Param: name}
}

// ByHeader is the configuration of a guard by header field.
func ByHeader(name string) Config {
	return Config{Key: keyfunc.Header(name)}
}

// ByQuery is the configuration of a guard by query parameter.
func ByQuery(name string) Config {
	return Config{Key: keyfunc.Query(name)}
}

// ByAll is the configuration of a guard by several keys. It panics when keys is nil.
func ByAll(adapter string, keys keyfunc.Set[keyfunc.Request]) Config {
	if keys == nil {
		panic(adapter + `: ByAll needs keys, such as keyfunc.All("account", keyfunc.JSON("from"), keyfunc.JSON("to"))`)
	}
	return Config{Keys: keys}
}

// ByTemplate is the configuration of a guard by template. It panics when the
// template is bad.
func ByTemplate(adapter, t string) Config {
	key, err := keyfunc.Template(t)
	if err != nil {
		panic(adapter + ": ByTemplate: " + err.Error())
	}
	return Config{About: "template " + strconv.Quote(t), Key: key}
}

// alone is a key as a set of its own.
func alone(key keyfunc.Func[keyfunc.Request]) keyfunc.Set[keyfunc.Request] {
	return func(r keyfunc.Request) ([]string, error) {
		k, err := key(r)
		return []string{k}, err
	}
}

// keys derives the keys, and finds out whether the key function, the route and the path fit.
func (g *Guard) keys(r Request) ([]string, error) {
	if name := g.config.Param; name != "" {
		keys, err := g.config.Keys(r) // declares has checked it
		if err == nil {
			value, _ := r.Param(name)
			err = keyfunc.ValidatePath(r.HTTP(), value)
		}
		return keys, err
	}
	checked := &checked{Request: r}
	keys, err := g.config.Keys(checked)
	if fault := checked.fault(err == nil); fault != nil {
		return nil, fault
	}
	switch {
	case err == nil && len(keys) == 0: // of a function that was written by hand
		err = keyfunc.ErrMissing
	case err == nil:
		err = checked.path()
	}
	return keys, err
}

// isUnmatched reports whether no route has matched: then nobody has set up anything wrongly,
// and the framework answers 404 or 405.
func isUnmatched(r Request) bool {
	pattern, known := r.Route()
	return known && pattern == ""
}
