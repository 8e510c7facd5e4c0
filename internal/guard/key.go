package guard

import (
	"net/http"
	"strings"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// ByParam is the configuration of a guard by path parameter: of exactly the
// routes that declare it.
func ByParam(name string) Config {
	return Config{Param: name, Key: named(name, keyfunc.Param(name))}
}

// ByHeader is the configuration of a guard by header field.
func ByHeader(name string) Config {
	return Config{Key: named(http.CanonicalHeaderKey(name), keyfunc.Header(name))}
}

// ByQuery is the configuration of a guard by query parameter.
func ByQuery(name string) Config {
	return Config{Key: named(name, keyfunc.Query(name))}
}

// ByTemplate is the configuration of a guard by template. It panics when the
// template is bad.
func ByTemplate(adapter, t string) Config {
	key, err := keyfunc.Template(t)
	if err != nil {
		panic(adapter + ": ByTemplate: " + err.Error())
	}
	return Config{Key: key}
}

// named puts the name of a part before its value: "orderID=42". The name ends at
// the first "=" that is not escaped, so no two names share a key.
func named(name string, f keyfunc.Func[keyfunc.Request]) keyfunc.Func[keyfunc.Request] {
	prefix := strings.NewReplacer(`\`, `\\`, `=`, `\=`).Replace(name) + "="
	return func(r keyfunc.Request) (string, error) {
		value, err := f(r)
		if err != nil {
			return "", err
		}
		return prefix + value, nil
	}
}
