package keyfunc_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

var (
	missing   = want{err: keyfunc.ErrMissing}
	ambiguous = want{err: keyfunc.ErrAmbiguous}
	malformed = want{err: keyfunc.ErrMalformed}
)

func TestJSON(t *testing.T) {
	deep := func(n int) string {
		return `{"id":1,"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	for path, bodies := range map[string]map[string]want{
		"id": {
			`{"id":"42"}`:                     {key: "42"},
			`{"id":42}`:                       {key: "42"},
			`{"id":-42}`:                      {key: "-42"},
			`{"id":0}`:                        {key: "0"},
			`{"id":9007199254740993}`:         {key: "9007199254740993"},
			`{"id":9223372036854775807}`:      {key: "9223372036854775807"},
			`{"id":-9223372036854775808}`:     {key: "-9223372036854775808"},
			`{"id":"18446744073709551658"}`:   {key: "18446744073709551658"}, // a text
			`{"id":true}`:                     {key: "true"},
			`{"id":false}`:                    {key: "false"},
			" \t\r\n{ \"id\" : \"42\" } \n":   {key: "42"},
			`{"\u0069d":"\u0034\u0032"}`:      {key: "42"},
			`{"id":"a\n\"b\u0000 "}`:          {key: "a\n\"b\x00 "},
			`{"id":"\ud83d\ude00é"}`:          {key: "😀é"},
			`{"x":{"id":1,"id":2},"id":42}`:   {key: "42"}, // not on the path
			`{"x":[{"ID":1}],"id":42}`:        {key: "42"},
			`{"id":42,"x":"\ud800","i\ud":1}`: malformed, // no JSON at all
			`{"id":42,"x":"\ud800"}`:          {key: "42"},
			`{"id":42,"ids":1,"i":2,"xid":3}`: {key: "42"},
			deep(9000):                        {key: "1"},
			deep(10001):                       malformed, // as encoding/json says

			"":                       missing,
			" \r\n\t":                missing,
			`{}`:                     missing,
			`{"x":"s3cret"}`:         missing,
			`{"id":null}`:            missing,
			`{"id":""}`:              missing,
			`null`:                   missing,
			`{"id":1,"id":"s3cret"}`: ambiguous,
			`{"id":1,"id":1}`:        ambiguous,
			`{"id":null,"id":1}`:     ambiguous,
			`{"id":1,"id":null}`:     ambiguous,
			`{"id":1,"\u0069d":2}`:   ambiguous,
			`{"id":1,"ID":2}`:        ambiguous,
			`{"Id":1,"id":2}`:        ambiguous,
			`{"ID":"s3cret"}`:        ambiguous,
			`{"iD":null}`:            ambiguous,
			`{"İd":1,"id":1}`:        ambiguous, // to a decoder that lowers the case
			// The name beside it was made to have the hash by which jsoniter finds fields of a struct.
			`{"id":1,"staqdezf\u0003$\u0008\u0060\u0008}\u0001\u000a\u00114\u0006\u00018":2}`: ambiguous,
			`{"id":1.0}`:                  malformed,
			`{"id":1e0}`:                  malformed,
			`{"id":1E0}`:                  malformed,
			`{"id":-0}`:                   malformed,
			`{"id":0.5}`:                  malformed,
			`{"id":9223372036854775808}`:  malformed, // goccy/go-json: -9223372036854775808
			`{"id":9446744073709551616}`:  malformed, // goccy/go-json: -9000000000000000000
			`{"id":18446744073709551615}`: malformed,
			`{"id":18446744073709551658}`: malformed, // 42 to some decoders
			`{"id":18446744073709551616}`: malformed,
			`{"id":-9223372036854775809}`: malformed,
			`{"id":340282366920938463463374607431768211498}`: malformed,
			`{"id":{"s3cret":1}}`:                            malformed,
			`{"id":["s3cret"]}`:                              malformed,
			`{"id":"s3cret\ud800"}`:                          malformed,
			`{"id":"\udc00\ud800"}`:                          malformed,
			`{"id":"\ufffd"}`:                                malformed,
			`{"id":"` + "\ufffd\"}":                          malformed,
			"{\"id\":\"\xff\"}":                              malformed,
			"{\"id\":1,\"x\":\"\xff\"}":                      malformed, // wherever it is
			`{"id":1,"id\ud800":2}`:                          malformed,
			`{"id":1} {"id":2}`:                              malformed,
			`{"id":1}s3cret`:                                 malformed,
			`{"id":1`:                                        malformed,
			`{"id":1,}`:                                      malformed,
			`{"id":01}`:                                      malformed,
			`{"id":+1}`:                                      malformed,
			`{id:1}`:                                         malformed,
			`{'id':1}`:                                       malformed,
			"\ufeff{\"id\":1}":                               malformed,
			`[1]`:                                            malformed,
			`"s3cret"`:                                       malformed,
			`1`:                                              malformed,
			`id=s3cret`:                                      malformed,
		},
		"order.id": {
			`{"order":{"id":"42"}}`:                    {key: "42"},
			`{"order":{"id":1,"x":{"order":{}}}}`:      {key: "1"},
			`{"id":1,"order":{"order":3,"id":42}}`:     {key: "42"},
			`{"order":{}}`:                             missing,
			`{"order":null}`:                           missing,
			`{"order.id":"s3cret"}`:                    missing,
			`{"order":{"id":1},"order":{}}`:            ambiguous,
			`{"order":{},"order":{"id":1}}`:            ambiguous,
			`{"order":null,"order":{"id":1}}`:          ambiguous,
			`{"order":{"id":1},"Order":{"id":2}}`:      ambiguous,
			`{"ORDER":{"id":1}}`:                       ambiguous,
			`{"order":{"Id":1}}`:                       ambiguous,
			`{"order":{"id":1,"id":2}}`:                ambiguous,
			`{"order":"s3cret"}`:                       malformed,
			`{"order":[{"id":1}]}`:                     malformed,
			`{"order":{"id":{}}}`:                      malformed,
			`{"order":{"id":1},"\udc00":{"s3cret":1}}`: malformed,
		},
		"items.1.id": {
			`{"items":[{"id":1},{"id":2},{"id":3}]}`: {key: "2"},
			`{"items":[{},{"id":2}]}`:                {key: "2"},
			`{"items":[{"id":1}]}`:                   missing,
			`{"items":[1,null]}`:                     missing,
			`{"items":[]}`:                           missing,
			`{"items":[{},{"id":1,"id":2}]}`:         ambiguous,
			`{"items":{"1":{"id":2}}}`:               malformed,
			`{"items":[1,2]}`:                        malformed,
		},
		"0": {
			`["a","b"]`: {key: "a"},
			`{"0":1}`:   malformed,
		},
		"10": {
			`[0,1,2,3,4,5,6,7,8,9,"a","b"]`: {key: "a"},
		},
		"1st": {
			`{"1st":"a"}`: {key: "a"},
		},
		"kurs": {
			`{"kurs":1}`:                      {key: "1"},
			"{\"\u212aurs\":1}":               ambiguous, // the Kelvin sign
			"{\"kurs\":1,\"kur\u017f\":2}":    ambiguous, // the long s
			`{"kurs":1,"\u212aur\u017f":2}`:   ambiguous,
			"{\"kurs\":1,\"kurs\u200b\":2}":   {key: "1"}, // no decoder folds that
			"{\"kurs\":1,\"ｋｕｒｓ\":2,\"ķ\":3}": {key: "1"},
		},
	} {
		for body, w := range bodies {
			name := body
			if len(name) > 60 {
				name = name[:60]
			}
			t.Run(path+"/"+name, func(t *testing.T) {
				r := post(body)
				check(t, value(keyfunc.JSON(path)), keyfunc.Request(r), w)
				if got := readAll(t, r.Body); got != body {
					t.Errorf("the handler reads %q; want %q", got, body)
				}
			})
		}
	}
	fails(t, keyfunc.JSON("order.id"), keyfunc.Request(post("{}")), `keyfunc: JSON field "order.id": missing`)
	fails(t, keyfunc.JSON("order.id"), keyfunc.Request(get("/")), `keyfunc: JSON field "order.id": missing: no body`)
}

// One text can be JSON with one value and a form with another.
func TestJSONRefusesWhatTheHandlerMayReadAsSomethingElse(t *testing.T) {
	const polyglot = `{"id":1,"x":"&id=2&"}`
	for contentType, w := range map[string]want{
		"application/json":                            {key: "id=1"},
		"application/json; charset=utf-8":             {key: "id=1"},
		"application/json;charset":                    {key: "id=1"},
		"application/json ;a=b":                       {key: "id=1"},
		" application/json":                           ambiguous,
		"application/json\t;charset=utf-8":            ambiguous,
		"APPLICATION/JSON":                            ambiguous,
		"text/json":                                   ambiguous,
		"application/vnd.api+json":                    ambiguous,
		"application/x-www-form-urlencoded":           ambiguous,
		"multipart/form-data; boundary=s3cret":        ambiguous,
		"application/xml":                             ambiguous,
		"text/plain":                                  ambiguous,
		"application/x-yaml":                          ambiguous,
		"application/jsonp":                           ambiguous,
		"application/json, application/xml":           ambiguous,
		"application/x-www-form-urlencoded; a=b; a=c": ambiguous,
		"": ambiguous,
	} {
		r := post(polyglot, "Content-Type", contentType)
		check(t, keyfunc.JSON("id"), keyfunc.Request(r), w)
		if got := readAll(t, r.Body); got != polyglot {
			t.Errorf("the handler reads %q", got)
		}
	}
	twice := post(polyglot, "Content-Type", "application/json", "Content-Type", "application/json")
	check(t, keyfunc.JSON("id"), keyfunc.Request(twice), ambiguous)
	none := post(polyglot)
	none.Header.Del("Content-Type")
	check(t, keyfunc.JSON("id"), keyfunc.Request(none), ambiguous)
	fails(t, keyfunc.JSON("id"), keyfunc.Request(none),
		`keyfunc: JSON field "id": the body is not declared as JSON: no Content-Type; only "application/json" is read as JSON by every handler`)
	query := post(polyglot)
	query.Method = http.MethodGet
	check(t, keyfunc.JSON("id"), keyfunc.Request(query), ambiguous)
}

// Optional must not let a handler run unlocked that takes the value from the query.
func TestJSONThatIsMissingBesideAQuery(t *testing.T) {
	for _, body := range []io.ReadCloser{nil, http.NoBody, io.NopCloser(strings.NewReader("{}"))} {
		for method, w := range map[string]want{
			"POST": missing, "PUT": missing, "PATCH": missing, "GET": ambiguous, "HEAD": ambiguous, "DELETE": ambiguous, "QUERY": ambiguous,
		} {
			r := post("")
			r.Method, r.Body, r.URL.RawQuery = method, body, "id=1"
			check(t, keyfunc.JSON("id"), keyfunc.Request(r), w)
			r.Header.Del("Content-Type")
			check(t, keyfunc.JSON("id"), keyfunc.Request(r), ambiguous)
			r.URL.RawQuery = ""
			if body == nil || body == http.NoBody {
				check(t, keyfunc.JSON("id"), keyfunc.Request(r), missing)
			}
		}
	}
}

func TestMediaType(t *testing.T) {
	f := keyfunc.JSON("id", keyfunc.MediaType("application/vnd.api+json"), keyfunc.MediaType(""))
	for contentType, w := range map[string]want{
		"application/vnd.api+json":            {key: "id=1"},
		"application/vnd.api+json; charset=x": {key: "id=1"},
		"application/json":                    {key: "id=1"},
		"":                                    {key: "id=1"},
		"application/vnd.api+jsonp":           ambiguous,
		"Application/vnd.api+json":            ambiguous,
		"application/xml":                     ambiguous,
	} {
		check(t, f, keyfunc.Request(post(`{"id":1}`, "Content-Type", contentType)), w)
	}
	none := post(`{"id":1}`)
	none.Header.Del("Content-Type")
	check(t, f, keyfunc.Request(none), want{key: "id=1"})
	for _, bad := range []string{"json", "/", "a/", "a/b;c=d", "a/b ", "a/b/c", "a b/c"} {
		panics(t, func() { keyfunc.MediaType(bad) }, `MediaType("application/vnd.api+json")`)
	}
}

func TestJSONRefusesEncodedBodies(t *testing.T) {
	for _, encoding := range []string{"gzip", "br", "identity, gzip", "x-gzip", ""} {
		r := post(`{"id":1}`, "Content-Encoding", encoding)
		check(t, keyfunc.JSON("id"), keyfunc.Request(r), malformed)
	}
	check(t, keyfunc.JSON("id"), keyfunc.Request(post(`{"id":1}`, "Content-Encoding", "identity", "Content-Encoding", "gzip")), malformed)
	check(t, keyfunc.JSON("id"), keyfunc.Request(post(`{"id":1}`, "Content-Encoding", "Identity")), want{key: "id=1"})
}
