package ginlock

import (
	"errors"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/latchkey-go/latchkey/internal/guard"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Report is what is guarded, and by what.
type Report []Route

// Route is a route of a [Report].
type Route struct {
	// Method and Pattern are the router's.
	Method, Pattern string
	// Guards are by what it is guarded, outermost first; none when it is not.
	Guards []string
	// Passed are guards that let its requests pass, because it does not declare their path parameter.
	Passed []string
	// Faults are what looks wrong, each with what to do about it.
	Faults []string
	// Unguarded says that the function of that name was given to the route.
	Unguarded bool
}

// String is a table for the log, with a line for each route, and one for each fault.
func (r Report) String() string { return guard.Table(r) }

// Err returns all faults, for the start of a program or a test, or nil when there are none.
func (r Report) Err() error { return guard.Faults(r) }

// RouteCheck lists the routes of a router: by what each is guarded, which are not guarded, and
// what looks wrong:
//
//   - a route that declares the parameters by which others are guarded, and is not guarded itself,
//     because it was added before the middleware
//   - one that declares such a parameter twice, in another spelling or not at all
//   - one that Strict refuses
//   - a guard by a parameter that no route behind it declares
//   - a key like "id=42" of several resources
//
// Call it once all routes are there. It runs no middleware but this package's, and key functions,
// see [keyfunc.Describe]. It serves no request, asks no Redis and does not block.
//
// It sees guards that are middleware themselves, not those that other middleware calls. It does
// not see what Skip lets through, nor which of several handlers of a route does the work. With a
// version of gin that has its routes elsewhere it returns an error.
func RouteCheck(router *gin.Engine) (Report, error) {
	trees := reflect.ValueOf(router).Elem().FieldByName("trees")
	if trees.Kind() != reflect.Slice {
		return nil, errNoRoutes
	}
	var seen []guard.SeenRoute
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
	return guard.Check[Route](seen), nil
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
