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
