package architecture

import (
	"flag"
	"fmt"
	"go/format"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the files that are derived")

// words are what differs between the files of two adapters that say the same.
type words struct {
	framework           string // what is imported
	context, middleware string // types
	onRefused           string // the type, or in hertzlock the field of Config
	requestOf           string // from the guard's request to the framework's
	safeMethods         string
	requestContext      string // of a context that may be the framework's
	example             string
	attempt             string // more about Attempt
	refusing            string // more about OnRefused
	byParam             string // more about ByParam
}

// adapter is a master, whose files are written by hand, or one whose files are derived from those of its master.
type adapter struct {
	folder, master string
	files          []string // of a master
	words
}

// adapters are those whose files say the same. A new one is a row.
var adapters = []adapter{{
	folder: "ginlock", files: []string{"config.go", "idempotent.go", "refusal.go", "report.go", "with.go"}, words: words{
		framework:  gin,
		context:    "*gin.Context",
		middleware: "gin.HandlerFunc",
		onRefused:  "func(c *gin.Context, err error)",
		requestOf:  "r.(request).c", safeMethods: "(c *gin.Context) bool { return guard.IsSafe(c.Request) }",
		requestContext: "requestContext(ctx)",
		example:        `router.POST("/orders/:orderID/pay", locks.ByParam("orderID"), pay)`,
		attempt:        "\n// The *gin.Context will do, too.",
		refusing: `
	// The chain is aborted already, and c.Errors has err: where middleware outside answers by c.Errors
	// without a look at c.Writer.Written, let OnRefused do nothing.`,
		byParam: `
//
// What NoRoute or NoMethod have it guard is refused with 500, too.`,
	},
}, {
	folder: "echolock", master: "ginlock", words: echoWords("echo.Context", echo4, "r.(*request).c"),
}, {
	folder: "adapters/echo5lock", master: "ginlock", words: echoWords("*echo.Context", "github.com/labstack/echo/v5", "r.(request).c"),
}, {
	folder: "httplock", master: "ginlock", words: words{
		framework:  "net/http",
		context:    "*http.Request",
		middleware: "func(http.Handler) http.Handler",
		onRefused:  "func(w http.ResponseWriter, r *http.Request, err error)",
		requestOf:  "r.HTTP()", safeMethods: "(r *http.Request) bool { return guard.IsSafe(r) }",
		requestContext: "ctx",
		example:        `mux.Handle("POST /orders/{orderID}/pay", locks.ByParam("orderID")(pay))`,
		byParam: `
//
// The guard knows of the other route by a router of chi, by a report of [RouteCheck], or because it has served a request
// for it. Where the route is not known yet the request is refused with 500 too: around a mux,
// and on a subtree ("/", "/api/", chi's "/api/*") without the parameter, for another
// router may be inside. Routers within one another need different names: the lock is by
// the value that is known where it stands, and the handler may find another one, of a
// router inside.`,
	},
}, {
	folder: "adapters/hertzlock", files: []string{"config.go", "with.go"}, words: words{
		framework:  "github.com/cloudwego/hertz/pkg/app",
		context:    "*app.RequestContext",
		middleware: "app.HandlerFunc",
		onRefused: `
	// OnRefused answers in place of the problem body. It begins with the status and Retry-After set, so that it need only write
	// a body; see StatusOf, ReasonOf and PartOf of package httplock. The text of err may be shown; its cause, behind Unwrap,
	// is for the server. The chain is aborted already, and c.Errors has err.
	OnRefused func(ctx context.Context, c *app.RequestContext, err error)`,
		example: `h.POST("/orders/:orderID/pay", locks.ByParam("orderID"), pay)`,
		byParam: `A route without the parameter passes, with a
// warning in the log, if another route behind the guard declares it, and the guard has served a request for that one; else it
// is refused with 500. A route that declares it twice, or in another spelling (letter case, "_" or "-" more or less), is refused
// with 500.`,
	},
}, {
	folder: "adapters/fiberlock", master: "adapters/hertzlock", words: words{
		framework:  "github.com/gofiber/fiber/v3",
		context:    "fiber.Ctx",
		middleware: "fiber.Handler",
		example:    `app.Post("/orders/:orderID/pay", locks.ByParam("orderID"), pay)`,
		byParam: `A request on a route
// that does not declare the parameter, or declares it twice, is refused with 500.
//`,
	},
}}

func echoWords(context, framework, requestOf string) words {
	return words{
		framework:  framework,
		context:    context,
		middleware: "echo.MiddlewareFunc",
		onRefused:  "func(c " + context + ", err error) error",
		requestOf:  requestOf, safeMethods: "(c " + context + ") bool { return guard.IsSafe(c.Request()) }",
		requestContext: "ctx",
		example:        `e.POST("/orders/:orderID/pay", pay, locks.ByParam("orderID"))`,
		refusing: `
	// It answers in place of the error that the application's error handler would get, and may return one of its own.`,
		byParam: `
//
// Any route of the application counts as one behind the guard, until [RouteCheck] has reported which are. Requests are
// refused with 500 in e.Pre, where the route is not known yet, too, and where RouteNotFound has it guard.`,
	}
}

// The adapters with the same functions cannot drift apart. To change their files, change those of the master, and run this test
// with -update.
func TestDerivedFiles(t *testing.T) {
	for _, a := range adapters {
		if a.master == "" {
			continue
		}
		master := adapters[slices.IndexFunc(adapters, func(m adapter) bool { return m.folder == a.master })]
		var all string
		for _, file := range master.files {
			source := read(t, filepath.Join("..", "..", master.folder, file))
			all += source
			want, err := derive(source, path.Join(master.folder, file), master, a)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Join("..", "..", a.folder, file)
			if *update {
				if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if got, _ := os.ReadFile(name); string(got) != want {
				t.Errorf("%s/%s is not as %s/%s has it: change that one, and run go test ./internal/architecture -run TestDerivedFiles -update",
					a.folder, file, master.folder, file)
			}
		}
		for word := range master.pairs(a) {
			if !strings.Contains(all, word) {
				t.Errorf("no file of %s has %q: what is derived would be without what stands for it", master.folder, word)
			}
		}
	}
}

// Without this the test above could pass because both files are wrong.
func TestWordsReplaceOneAnother(t *testing.T) {
	master := adapter{folder: "ginlock", words: words{framework: gin, context: "*gin.Context", onRefused: "func(c *gin.Context)"}}
	other := adapter{folder: "x/httplock", words: words{framework: "net/http", context: "*http.Request", onRefused: "func(w http.ResponseWriter)"}}
	source := "package ginlock\n\nimport (\n\t\"log\"\n\n\t\"github.com/gin-gonic/gin\"\n)\n\n" +
		"var (\n\tf func(c *gin.Context)\n\tg *gin.Context\n)\n"
	got, err := derive(source, "ginlock/f.go", master, other)
	want := "// Code generated from ginlock/f.go by internal/architecture. DO NOT EDIT.\n\n" +
		"package httplock\n\nimport \"net/http\"\n\nvar (\n\tf func(w http.ResponseWriter)\n\tg *http.Request\n)\n"
	if err != nil || got != want {
		t.Errorf("%v\n%s", err, got)
	}
}

// pairs returns the words of a master with those of another adapter.
func (a adapter) pairs(other adapter) map[string]string {
	pairs := map[string]string{path.Base(a.folder): path.Base(other.folder)}
	mine, others := reflect.ValueOf(a.words), reflect.ValueOf(other.words)
	for i := range mine.NumField() {
		if word := mine.Field(i).String(); word != "" {
			pairs[word] = others.Field(i).String()
		}
	}
	return pairs
}

// derive returns a file of the master with the words of another adapter. Of two words that begin in the same place it is the longer one.
func derive(source, name string, master, other adapter) (string, error) {
	pairs := master.pairs(other)
	var oldNew []string
	for _, word := range slices.Backward(slices.SortedFunc(maps.Keys(pairs), func(a, b string) int { return len(a) - len(b) })) {
		oldNew = append(oldNew, word, pairs[word])
	}
	text := strings.NewReplacer(oldNew...).Replace(source)
	text, err := withImports(text)
	if err != nil {
		return "", fmt.Errorf("%s for %s: %w", name, other.folder, err)
	}
	return fmt.Sprintf("// Code generated from %s by internal/architecture. DO NOT EDIT.\n\n%s", name, text), nil
}

var importLines = regexp.MustCompile(`(?m)^import (?:"\S+"|\((?s:.*?)\n\))$`)

// withImports keeps the imports that a file uses, and puts them into the usual groups.
func withImports(source string) (string, error) {
	at := importLines.FindStringIndex(source)
	groups := make([][]string, 3) // of the standard library, of others, our own
	for _, spec := range regexp.MustCompile(`"\S+"`).FindAllString(source[at[0]:at[1]], -1) {
		imported := strings.Trim(spec, `"`)
		name := path.Base(regexp.MustCompile(`/v\d+$`).ReplaceAllString(imported, ""))
		if !strings.Contains(source[at[1]:], name+".") {
			continue
		}
		group := 1
		switch {
		case isStandard(imported):
			group = 0
		case strings.HasPrefix(imported, module):
			group = 2
		}
		groups[group] = append(groups[group], "\t"+spec+"\n")
	}
	var lines []string
	for _, group := range groups {
		if len(group) > 0 {
			lines = append(lines, strings.Join(group, ""))
		}
	}
	imports := "import (\n" + strings.Join(lines, "\n") + ")"
	if strings.Count(imports, `"`) == 2 {
		imports = "import " + strings.TrimSpace(lines[0])
	}
	formatted, err := format.Source([]byte(source[:at[0]] + imports + source[at[1]:]))
	return string(formatted), err
}
