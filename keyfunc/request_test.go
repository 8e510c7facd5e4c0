package keyfunc_test

import (
	"testing"

	"github.com/latchkey-go/latchkey/keyfunc"
)

func TestParam(t *testing.T) {
	r := get("/")
	r.params = map[string]string{"orderID": "42", "empty": ""}
	check(t, keyfunc.Param("orderID"), keyfunc.Request(r), want{key: "orderID=42"})
	check(t, keyfunc.Param("empty"), keyfunc.Request(r), want{err: keyfunc.ErrMissing})
	check(t, keyfunc.Param("orderid"), keyfunc.Request(r), want{err: keyfunc.ErrMissing})
	fails(t, keyfunc.Param("empty"), keyfunc.Request(r), `keyfunc: path parameter "empty": missing`)
	fails(t, keyfunc.Param("typo"), keyfunc.Request(r), `keyfunc: path parameter "typo": not set up: the route does not declare it`)
	r.params["path"] = "s3cret//%2e"
	fails(t, keyfunc.Param("path"), keyfunc.Request(r),
		`keyfunc: path parameter "path": a path with escapes, or with empty or dot segments: `+
			`it has an escape; Unescaped or Path says how to read it`)
}

func TestQuery(t *testing.T) {
	for query, w := range map[string]want{
		"id=42":             {key: "42"},
		"a=1&id=42&b=2":     {key: "42"},
		"id=a%20b+c":        {key: "a b c"},
		"%69d=42":           {key: "42"},
		"id=%FF":            {key: "\xff"},
		"":                  {err: keyfunc.ErrMissing},
		"id":                {err: keyfunc.ErrMissing},
		"id=":               {err: keyfunc.ErrMissing},
		"ID=s3cret":         {err: keyfunc.ErrAmbiguous}, // echo's Bind takes it
		"Id=":               {err: keyfunc.ErrAmbiguous},
		"id=42&ID=s3cret":   {err: keyfunc.ErrAmbiguous},
		"ID=1&id=s3cret":    {err: keyfunc.ErrAmbiguous},
		"%49D=1":            {err: keyfunc.ErrAmbiguous},
		"ids=1&i=2&xid=3":   {err: keyfunc.ErrMissing},
		"id=s3cret&id=1":    {err: keyfunc.ErrAmbiguous},
		"id=s3cret&%69d=1":  {err: keyfunc.ErrAmbiguous},
		"id=1&id=1":         {err: keyfunc.ErrAmbiguous},
		"id=&id=s3cret":     {err: keyfunc.ErrAmbiguous},
		"id=1;id=s3cret":    {err: keyfunc.ErrMalformed},
		"id=1&x=s3cret;y=1": {err: keyfunc.ErrMalformed},
		"id=%zzs3cret":      {err: keyfunc.ErrMalformed},
		"id=1&%zz=s3cret":   {err: keyfunc.ErrMalformed},
	} {
		t.Run(query, func(t *testing.T) {
			r := get("/")
			r.URL.RawQuery = query
			check(t, value(keyfunc.Query("id")), keyfunc.Request(r), w)
		})
	}
	fails(t, keyfunc.Query("id"), keyfunc.Request(get("/")), `keyfunc: query parameter "id": missing`)
	fails(t, keyfunc.Query("id"), keyfunc.Request(get("/?id=1&id=2")), `keyfunc: query parameter "id": given more than once`)
	fails(t, keyfunc.Query("id"), keyfunc.Request(get("/?id=%zz")), `keyfunc: query parameter "id": malformed: the query does not parse`)
}

func TestHeader(t *testing.T) {
	h := keyfunc.Header("x-user-ID")
	check(t, h, keyfunc.Request(get("/", "X-User-Id", "7")), want{key: "X-User-Id=7"})
	check(t, h, keyfunc.Request(get("/", "x-uSER-id", "a, b")), want{key: "X-User-Id=a, b"})
	check(t, h, keyfunc.Request(get("/")), want{err: keyfunc.ErrMissing})
	check(t, h, keyfunc.Request(get("/", "X-User-Id", "")), want{err: keyfunc.ErrMissing})
	check(t, h, keyfunc.Request(get("/", "X-User-Id", secret, "X-User-ID", "2")), want{err: keyfunc.ErrAmbiguous})
	check(t, h, keyfunc.Request(get("/", "X-User-Id", "", "X-User-ID", secret)), want{err: keyfunc.ErrAmbiguous})
	fails(t, h, keyfunc.Request(get("/")), `keyfunc: header "X-User-Id": missing`)
}

func TestHeaderHostIsTheRequestsHost(t *testing.T) {
	r := get("http://shop.example/", "Host", "forged.example")
	check(t, keyfunc.Header("host"), keyfunc.Request(r), want{key: "Host=shop.example"})
	r.Host = ""
	check(t, keyfunc.Header("Host"), keyfunc.Request(r), want{err: keyfunc.ErrMissing})
}

func TestCookie(t *testing.T) {
	for header, w := range map[string]want{
		"id=42":              {key: "42"},
		"a=1; id=42; b=2":    {key: "42"},
		`id="42"`:            {key: "42"},
		"ID=1; id=42":        {err: keyfunc.ErrAmbiguous}, // fiber's Bind takes either
		"id=42; _i-D=1":      {err: keyfunc.ErrAmbiguous},
		"id=42; id[]=s3cret": {err: keyfunc.ErrAmbiguous},
		"id=%34%32":          {key: "42"}, // as gin reads it
		"id=a+b":             {key: "a b"},
		"":                   {err: keyfunc.ErrMissing},
		"id=":                {err: keyfunc.ErrMissing},
		"ID=s3cret":          {err: keyfunc.ErrAmbiguous},
		"id=s3cret; id=1":    {err: keyfunc.ErrAmbiguous},
		"id=1; x=2; id=1":    {err: keyfunc.ErrAmbiguous},
		"id=s3cret%zz":       {err: keyfunc.ErrMalformed},
		"a=id; idx=1; xid=2": {err: keyfunc.ErrMissing},
		// net/http shows no such cookie, and others do.
		`id="s3cret`:             {err: keyfunc.ErrAmbiguous},
		"id=42; id=s3\"cret":     {err: keyfunc.ErrAmbiguous},
		"id=s3crét; id=42":       {err: keyfunc.ErrAmbiguous},
		"id=42; id=s3crét":       {err: keyfunc.ErrAmbiguous},
		"id=s3crét":              {err: keyfunc.ErrAmbiguous},
		"id=s3cret\\; id=42":     {err: keyfunc.ErrAmbiguous},
		"id\u00a0=s3cret; id=42": {err: keyfunc.ErrAmbiguous},
		"\x01id=s3cret; id=42":   {err: keyfunc.ErrAmbiguous},
		// It takes these for the name, and others do not.
		"\tid=s3cret": {err: keyfunc.ErrAmbiguous},
		"id =s3cret":  {err: keyfunc.ErrAmbiguous},
	} {
		t.Run(header, func(t *testing.T) {
			check(t, value(keyfunc.Cookie("id")), keyfunc.Request(get("/", "Cookie", header)), w)
		})
	}
	check(t, keyfunc.Cookie("id"), keyfunc.Request(get("/", "Cookie", "id=1", "Cookie", "id="+secret)), want{err: keyfunc.ErrAmbiguous})
	fails(t, keyfunc.Cookie("id"), keyfunc.Request(get("/")), `keyfunc: cookie "id": missing`)
	fails(t, keyfunc.Cookie("id"), keyfunc.Request(get("/", "Cookie", "id=%zz")), `keyfunc: cookie "id": malformed: bad escape`)
}

func TestRemoteIP(t *testing.T) {
	for address, w := range map[string]want{
		"192.0.2.1:1234":                   {key: "192.0.2.1"},
		"[::ffff:192.0.2.1]:1234":          {key: "192.0.2.1"},
		"[2001:DB8:0:0::1]:1":              {key: "2001:db8::1"},
		"[fe80::1%eth0]:1234":              {key: "fe80::1"},
		"[::ffff:192.0.2.1%eth0]:1":        {key: "192.0.2.1"},
		"":                                 {err: keyfunc.ErrMissing},
		"@":                                {err: keyfunc.ErrMalformed},
		"192.0.2.1":                        {err: keyfunc.ErrMalformed}, // what chi's RealIP leaves there
		"s3cret:80":                        {err: keyfunc.ErrMalformed},
		"192.0.2.1:99999s3cret":            {err: keyfunc.ErrMalformed},
		"192.0.2.1:1, s3cret":              {err: keyfunc.ErrMalformed},
		"[2001:db8::00000000000000001]:80": {err: keyfunc.ErrMalformed},
	} {
		t.Run(address, func(t *testing.T) {
			r := get("/", "X-Forwarded-For", "203.0.113.9", "X-Real-IP", "203.0.113.9", "Forwarded", "for=203.0.113.9")
			r.RemoteAddr = address
			check(t, value(keyfunc.RemoteIP()), keyfunc.Request(r), w)
		})
	}
}

func TestConstructorsOfRequestPartsPanic(t *testing.T) {
	panics(t, func() { keyfunc.Param("") }, `Param("orderID")`)
	panics(t, func() { keyfunc.Query("") }, `Query("id")`)
	for _, name := range []string{"", "X User", "X:User", "Ü", "a\n"} {
		panics(t, func() { keyfunc.Header(name) }, `Header("Idempotency-Key")`)
		panics(t, func() { keyfunc.Cookie(name) }, `Cookie("session")`)
	}
	keyfunc.Header("!#$%&'*+-.^_`|~09azAZ")
	panics(t, func() { keyfunc.Value(nil) }, `Value("userID")`)
	panics(t, func() { keyfunc.Value([]string{"a"}) }, `Value("userID")`)
}
