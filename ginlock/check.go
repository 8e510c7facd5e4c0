package ginlock

import (
	"errors"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// RouteCheck lists the routes of a router: by what each is guarded, which are not guarded, and
// what looks wrong:
//
//   - a route that declares the parameters by which others are guarded, and is not guarded itself,
//     because it was added before the middleware
//   - one that declares such a parameter twice, in another spelling or not at all
//   - one that Strict refuses
//   - a guard by a parameter that no route behind it declares, or that NoRoute or NoMethod were given
//   - a key like "id=42" of several resources
//
// Call it once all routes are there. It runs no middleware but this package's, and key functions,
// see [keyfunc.Describe]. It serves no request, asks no Redis and does not block.
//
// It sees guards that are middleware themselves, not those that other middleware calls. It does
// not see what Skip lets through, nor which of several handlers of a route does the work. With a
// version of gin that has its routes elsewhere it returns an error.
func RouteCheck(router *gin.Engine) (Report, error) {
	seen, err := routesOf(router)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"NoRoute", "NoMethod"} {
		if guards := guardsOf(fallbacks(router, name)); len(guards) > 0 {
			seen = append(seen, guard.SeenRoute{Method: name, Before: []guard.Before{{Guards: guards, Fix: "take it away from " + name}}})
		}
	}
	return guard.Check[Route](seen), nil
}

func routesOf(router *gin.Engine) (seen []guard.SeenRoute, err error) {
	trees := reflect.ValueOf(router).Elem().FieldByName("trees")
	if trees.Kind() != reflect.Slice {
		return nil, errNoRoutes
	}
	for i := range trees.Len() {
		method, root := trees.Index(i).FieldByName("method"), trees.Index(i).FieldByName("root")
		if method.Kind() != reflect.String || root.Kind() != reflect.Pointer {
			return nil, errNoRoutes
		}
		if err := walk(root, func(pattern string, chain gin.HandlersChain) {
			last := len(chain) - 1
			seen = append(seen, guard.SeenRoute{
				Method: method.String(), Pattern: pattern, Params: guard.ColonParams(pattern, ":*"),
				Guards: guardsOf(chain[:last]), TooLate: len(guardsOf(chain[last:])) > 0, Unguarded: guard.Has(chain, Unguarded),
			})
		}); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// fallbacks returns what NoRoute or NoMethod were given.
func fallbacks(router *gin.Engine, name string) gin.HandlersChain {
	field := map[string]string{"NoRoute": "noRoute", "NoMethod": "noMethod"}[name]
	if given := guard.Unexported[gin.HandlersChain](reflect.ValueOf(router).Elem(), field); given != nil {
		return *given
	}
	return nil
}

// Unguarded is middleware that does nothing: it declares a route, or a group, that is not guarded
// on purpose, such as one that reads what others change. [RouteCheck] then does not take it for one
// that was forgotten.
//
//	router.GET("/orders/:orderID", ginlock.Unguarded, getOrder)
func Unguarded(*gin.Context) {}

var errNoRoutes = errors.New("ginlock: RouteCheck does not know where this version of gin keeps its routes")

// walk visits the routes below a node of gin's tree.
func walk(node reflect.Value, visit func(pattern string, chain gin.HandlersChain)) error {
	node = node.Elem()
	pattern, children := node.FieldByName("fullPath"), node.FieldByName("children")
	chain := guard.Unexported[gin.HandlersChain](node, "handlers")
	if pattern.Kind() != reflect.String || chain == nil || children.Kind() != reflect.Slice {
		return errNoRoutes
	}
	if len(*chain) > 0 {
		visit(pattern.String(), *chain)
	}
	for i := range children.Len() {
		if err := walk(children.Index(i), visit); err != nil {
			return err
		}
	}
	return nil
}

// probed is the context of no request: a guard that is called with it reports itself to probe.
var (
	probed = new(gin.Context)
	probe  guard.Probe
)

func guardsOf(chain gin.HandlersChain) []*guard.Guard {
	ours := By(keyfunc.RemoteIP())
	return guard.GuardsOf(&probe, chain, ours, func(h gin.HandlerFunc) { h(probed) })
}
