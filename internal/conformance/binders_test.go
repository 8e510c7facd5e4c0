package conformance_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gin-gonic/gin"
	echo4 "github.com/labstack/echo/v4"
	echo5 "github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/adapters/echo5lock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/echolock"
	"github.com/latchkey-go/latchkey/ginlock"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

// bound is what handlers bind a request to.
type bound struct {
	ID string `json:"id" form:"id" query:"id" xml:"id"`
}

// binder is a server whose handler, behind a lock by key, binds the request as its
// framework does it and tells what it has got.
type binder struct {
	name  string
	query bool // it can read the query of a GET
	build func(key keyfunc.Func[keyfunc.Request], got func(r *http.Request, id string)) http.Handler
}

var binders = []binder{
	{"gin ShouldBind", true, ginBinder((*gin.Context).ShouldBind)},
	{"gin ShouldBindJSON", false, ginBinder((*gin.Context).ShouldBindJSON)},
	{"echo v4 Bind", true, func(key keyfunc.Func[keyfunc.Request], got func(*http.Request, string)) http.Handler {
		e := echo4.New()
		e.Any("/", func(c echo4.Context) error {
			var b bound
			if err := c.Bind(&b); err != nil {
				return err
			}
			got(c.Request(), b.ID)
			return nil
		}, echolock.By(key))
		return e
	}},
	{"echo v5 Bind", true, func(key keyfunc.Func[keyfunc.Request], got func(*http.Request, string)) http.Handler {
		e := echo5.New()
		for _, method := range methods {
			e.Add(method, "/", func(c *echo5.Context) error {
				var b bound
				if err := c.Bind(&b); err != nil {
					return err
				}
				got(c.Request(), b.ID)
				return nil
			}, echo5lock.By(key))
		}
		return e
	}},
	{"net/http", false, func(key keyfunc.Func[keyfunc.Request], got func(*http.Request, string)) http.Handler {
		return httplock.By(key)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var b bound
			if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			got(r, b.ID)
		}))
	}},
}

func ginBinder(bind func(*gin.Context, any) error) func(keyfunc.Func[keyfunc.Request], func(*http.Request, string)) http.Handler {
	return func(key keyfunc.Func[keyfunc.Request], got func(*http.Request, string)) http.Handler {
		router := gin.New()
		for _, method := range methods {
			router.Handle(method, "/", ginlock.By(key), func(c *gin.Context) {
				var b bound
				if err := bind(c, &b); err != nil {
					c.Status(http.StatusBadRequest)
					return
				}
				got(c.Request, b.ID)
			})
		}
		return router
	}
}

var methods = []string{"POST", "GET", "HEAD", "DELETE", "QUERY"}

// bodyTypes are ways to declare a body that some binder takes for JSON, or for
// something else.
var bodyTypes = [][]string{
	{"application/json"}, {"application/json; charset=utf-8"}, {"application/json;"}, {"application/json ;a=b"},
	{"application/json x"},
	nil, {""}, {";"}, {" application/json"}, {"application/json\t;charset=utf-8"}, {"application/json,"},
	{"APPLICATION/JSON"}, {"Application/Json"}, {"application/jsonp"}, {"application/json-patch+json"}, {"application/json+xml"},
	{"text/json"}, {"application/vnd.api+json"}, {"application/xml+json"}, {"application/x-www-form-urlencoded+json"},
	{"multipart/form-data+json"}, {"text/xml+json"}, {"application/x-yaml+json"},
	{"application/x-www-form-urlencoded"}, {"application/xml"}, {"text/xml"}, {"application/x-yaml"}, {"text/plain"},
	{"application/json", "application/xml"}, {"application/xml", "application/json"}, {"application/json", "application/json"},
	{"application/json, application/xml"}, {"", "application/json"},
}

// TestBindersReadWhatTheLockReads sends one text that has one ID as JSON, another as
// a form, another as XML, and a query with yet another, by every type and method.
func TestBindersReadWhatTheLockReads(t *testing.T) {
	eachBinder(t, keyfunc.JSON("id"), func(t *testing.T, _ binder, send func(*http.Request) (ran bool)) {
		for _, method := range methods {
			for _, types := range bodyTypes {
				for _, query := range []string{"", "?id=4", "?ID=4"} {
					for _, body := range []string{`{"id":"1","x":"<o><id>3</id></o>&id=2&"}`, `{}`, ``} {
						for _, chunked := range []bool{false, true} {
							ran := send(requestOf(method, query, body, types, chunked))
							plain := len(types) == 1 && strings.HasPrefix(types[0], "application/json;") && method == "POST"
							if plain && len(body) > 2 && !ran {
								t.Errorf("%s %q: no handler ran", method, types)
							}
						}
					}
				}
			}
		}
	})
}

// TestQueryBindersReadWhatTheLockReads is about echo, whose binder takes names in any
// letter case.
func TestQueryBindersReadWhatTheLockReads(t *testing.T) {
	eachBinder(t, keyfunc.Query("id"), func(t *testing.T, b binder, send func(*http.Request) (ran bool)) {
		for _, query := range []string{
			"id=1", "ID=1", "Id=1", "iD=1", "id=1&ID=2", "ID=2&id=1", "id=&ID=1", "id=1&Id=", "%49d=1", "id[]=1", "id.=1", "İd=1", "ıd=1",
			"id=1&id=2", "id=1;ID=2",
		} {
			if ran := send(requestOf("GET", "?"+query, "", nil, false)); query == "id=1" && b.query && !ran {
				t.Errorf("%s: no handler ran", query)
			}
		}
	})
}

func requestOf(method, query, body string, types []string, chunked bool) *http.Request {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	if chunked {
		reader = io.MultiReader(strings.NewReader(body))
	}
	r := httptest.NewRequest(method, "/"+query, reader)
	if types != nil {
		r.Header["Content-Type"] = types
	}
	return r
}

// eachBinder checks for what is sent that a handler which runs binds the value that
// is locked, and nothing where Optional has let it through without a lock.
func eachBinder(t *testing.T, key keyfunc.Func[keyfunc.Request], sendAll func(t *testing.T, b binder, send func(*http.Request) (ran bool))) {
	for _, b := range binders {
		for _, optional := range []bool{false, true} {
			f := keyfunc.Named("id", key)
			if optional {
				f = keyfunc.Optional(f)
			}
			t.Run(fmt.Sprintf("%s/optional=%v", b.name, optional), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					core.SetDefault(locktest.New(t))
					defer core.SetDefault(nil)
					ran := false
					server := b.build(f, func(r *http.Request, id string) {
						ran = true
						k, locked := core.FromContext(r.Context())
						if locked && k.Key() != "id="+id || !locked && (id != "" || !optional) {
							held := ""
							if locked {
								held = k.Key()
							}
							t.Errorf("%s %s %q: locked %q, bound %q", r.Method, r.URL, r.Header["Content-Type"], held, id)
						}
					})
					sendAll(t, b, func(r *http.Request) bool {
						ran = false
						server.ServeHTTP(httptest.NewRecorder(), r)
						return ran
					})
				})
			})
		}
	}
}

// TestBodyBeatsThePath shows what the lock cannot see, what docs/keys.md warns of, and the
// fix that it gives.
func TestBodyBeatsThePath(t *testing.T) {
	type payment struct {
		OrderID string `uri:"orderID" param:"orderID"`
	}
	var got payment
	router := gin.New()
	router.POST("/first/:orderID", func(c *gin.Context) { _, _ = c.ShouldBindUri(&got), c.ShouldBindJSON(&got) })
	router.POST("/last/:orderID", func(c *gin.Context) { _, _ = c.ShouldBindJSON(&got), c.ShouldBindUri(&got) })
	e4 := echo4.New()
	e4.POST("/first/:orderID", func(c echo4.Context) error { return c.Bind(&got) })
	e5 := echo5.New()
	e5.POST("/first/:orderID", func(c *echo5.Context) error { return c.Bind(&got) })
	for _, c := range []struct {
		server     http.Handler
		path, want string
	}{{router, "/first/42", "43"}, {router, "/last/42", "42"}, {e4, "/first/42", "43"}, {e5, "/first/42", "43"}} {
		got = payment{}
		c.server.ServeHTTP(httptest.NewRecorder(), func() *http.Request {
			r := httptest.NewRequest("POST", c.path, strings.NewReader(`{"orderid":"43"}`))
			r.Header.Set("Content-Type", "application/json")
			return r
		}())
		if got.OrderID != c.want {
			t.Errorf("%T %s: bound %q; want %q", c.server, c.path, got.OrderID, c.want)
		}
	}
}
