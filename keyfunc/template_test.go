package keyfunc_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

func TestTemplateTakesFromEverySource(t *testing.T) {
	r := post(`{"order":{"id":5}}`, "X-User-ID", "3", "Cookie", "session=4")
	r.URL.RawQuery = "item=2"
	r.params = map[string]string{"orderID": "1"}
	r.values = map[any]any{"user.id": 6}
	r.RemoteAddr = "192.0.2.7:80"
	f, err := keyfunc.Template("a:{param.orderID}b{query.item}c{header.X-User-ID}d{cookie.session}e{json.order.id}f{value.user.id}g{ip}h")
	if err != nil {
		t.Fatal(err)
	}
	check(t, f, keyfunc.Request(r), want{key: "a:1b2c3d4e5f6g192.0.2.7h"})
	r.URL.RawQuery = "item=2&item=s3cret"
	check(t, f, keyfunc.Request(r), want{err: keyfunc.ErrAmbiguous})
	delete(r.params, "orderID")
	check(t, f, keyfunc.Request(r), want{err: keyfunc.ErrMissing})
}

func TestTaskTemplate(t *testing.T) {
	f, err := keyfunc.TaskTemplate("{type}:{payload.order.id}")
	if err != nil {
		t.Fatal(err)
	}
	check(t, f, keyfunc.Task(task{"order:pay", `{"order":{"id":"1"}}`}), want{key: `order\:pay:1`})
	check(t, f, keyfunc.Task(task{"order:pay", `{}`}), want{err: keyfunc.ErrMissing})
	check(t, f, keyfunc.Task(task{"", `{"order":{"id":"1"}}`}), want{err: keyfunc.ErrMissing})
}

// No value can imitate the template's text.
func TestTemplateEscapes(t *testing.T) {
	for _, c := range []struct{ template, a, b, key string }{
		{"t:{query.a}:{query.b}", "x:y", "z", `t:x\:y:z`},
		{"t:{query.a}:{query.b}", `x\`, "z", `t:x\\:z`},
		{"order:{query.a}:user:{query.b}", "1:user:2", "3", `order:1\:user\:2:user:3`},
		{"t:{query.a}-{query.b}", "1-2", "3-4", `t:1\-2-3-4`},
		{"t:{query.a}-{query.b}", "1:2=0", "3=4", `t:1\:2\=0-3\=4`},
		{"t:{query.a}={query.b}", "1=2", "3", `t:1\=2=3`},
		{"t:{query.a}bc{query.b}", "1b2bc", "3", `t:1\b2\bcbc3`},
		{"t:{query.a}é{query.b}", "éè", "3", `t:\éèé3`},
		{"t={query.a}:{query.b}!", "1", "2!", `t=1:2\!!`},
	} {
		f, err := keyfunc.Template(c.template)
		if err != nil {
			t.Fatal(err)
		}
		check(t, f, ab(c.a, c.b), want{key: c.key})
	}
}

func TestTemplateCanGiveNames(t *testing.T) {
	f, err := keyfunc.Template("order:a={query.a}:b={query.b}")
	if err != nil {
		t.Fatal(err)
	}
	scope := keyfunc.Scope("order", keyfunc.Join(keyfunc.Query("a"), keyfunc.Query("b")))
	for _, r := range []keyfunc.Request{ab("1", "2"), ab("1:2", `3\`), ab(`\:=`, `::\\`)} {
		w, err := scope(r)
		if err != nil {
			t.Fatal(err)
		}
		check(t, f, r, want{key: w})
	}
}

func TestTemplateErrorsShowPositionAndSources(t *testing.T) {
	const sources = "{param.orderID}, {query.id}, {header.X-User-ID}, {cookie.session}, {json.order.id}, {value.userID}, {ip}"
	for template, text := range map[string]string{
		"order:{parm.id}":      `unknown source "parm" at 7`,
		"{Param.id}":           `unknown source "Param" at 1`,
		"order:{param.id":      `"{" without "}" at 6`,
		"{param.{id}}":         `"{" without "}" at 0`,
		"a{":                   `"{" without "}" at 1`,
		"order:param.id}":      `"}" without "{" at 14`,
		"a:{param.id}}":        `"}" without "{" at 12`,
		"{param.id}":           `no text that ends with ":" or "=" before the first value`,
		"order{param.id}":      `no text that ends with ":" or "=" before the first value`,
		"{ip}:order":           `no text that ends with ":" or "=" before the first value`,
		"{}":                   "an empty placeholder at 1",
		"{param}":              `"param" without a name; write such as {param.orderID} at 6`,
		"{param.}":             `"param" without a name; write such as {param.orderID} at 6`,
		"{.id}":                `unknown source "" at 1`,
		"{ip.v4}":              `"ip" has no names in it; write {ip} at 3`,
		"{ip.}":                `"ip" has no names in it; write {ip} at 3`,
		"{ param.id}":          "a space in a placeholder at 1",
		"{param.id }":          "a space in a placeholder at 9",
		"{header.X(User)}":     `"X(User)" has a character that such a name cannot have at 8`,
		"{cookie.a;b}":         `"a;b" has a character that such a name cannot have at 8`,
		"{json.a..b}":          `"a..b" has an empty name at 6`,
		"{json.a.01}":          `"a.01" has a number that is no index at 6`,
		"a:{param.a}{param.b}": `two placeholders without text between them; put ":" there at 11`,
		"":                     "there is no placeholder, so everything would share one key; Const does that, if it is wanted at 0",
		"order":                "there is no placeholder, so everything would share one key; Const does that, if it is wanted at 0",
		`a\{param.id}`:         "a backslash, which the text cannot have at 1",
		`a:{param.id}\`:        "a backslash, which the text cannot have at 12",
		"ab\xff{param.id}":     "the text is not UTF-8 at 2",
		"{type}":               `unknown source "type" at 1`,
		"{payload.id}":         `unknown source "payload" at 1`,
		"a:{ip}:{param.b}}":    `"}" without "{" at 16`,
	} {
		t.Run(template, func(t *testing.T) {
			f, err := keyfunc.Template(template)
			if f != nil || err == nil {
				t.Fatalf("got %v; want an error", err)
			}
			for _, part := range []string{"keyfunc: template ", text, sources} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%s; want %s in it", err, part)
				}
			}
		})
	}
	for template, text := range map[string]string{
		"{param.id}":          `unknown source "param" at 1`,
		"{payload}":           `"payload" without a name; write such as {payload.order.id} at 8`,
		"{payload.a.}":        `"a." has an empty name at 9`,
		"{type.x}":            `"type" has no names in it; write {type} at 5`,
		"type":                "there is no placeholder",
		"{type}{type}":        "two placeholders without text between them",
		"{payload.id}":        `no text that ends with ":" or "=" before the first value`,
		"{type}-{payload.id}": `no text that ends with ":" or "=" before the first value`,
		"{type}:{type!":       `"{" without "}" at 7`,
	} {
		f, err := keyfunc.TaskTemplate(template)
		if f != nil || err == nil || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "{type}, {payload.order.id}") {
			t.Errorf("got %v; want %s, and the sources", err, text)
		}
	}
}

func ab(a, b string) keyfunc.Request {
	r := get("/")
	r.URL.RawQuery = url.Values{"a": {a}, "b": {b}}.Encode()
	return r
}
