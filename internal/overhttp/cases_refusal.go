package overhttp

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

func busy[M any](h *harness[M]) {
	url := h.serve(h.by(core.NoWait()), h.never)
	locktest.Hold(h.T, h.locker, "orderID=42", core.FixedLease(20*time.Second))
	a := h.post(url, "")
	h.want(a, http.StatusConflict)
	if after, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || after < 1 || after > 20 {
		h.Errorf("Retry-After %d, %v", after, err)
	}
}

func unavailable[M any](h *harness[M]) {
	url := h.serve(h.by(), h.never)
	end := locktest.Outage(h.T, h.locker)
	h.want(h.post(url, ""), http.StatusServiceUnavailable)
	end()
	closed := locktest.New(h.T)
	if err := closed.Close(context.Background()); err != nil {
		h.Fatal(err)
	}
	h.want(h.post(h.serve(h.With(closed).By(orderID), h.never), ""), http.StatusServiceUnavailable)
}

func defaultLocker[M any](h *harness[M]) {
	core.SetDefault(nil)
	url := h.serve(h.With(nil).By(orderID), nothing)
	a := h.post(url, "")
	h.want(a, http.StatusInternalServerError)
	if !strings.Contains(a.Body, "The service cannot process this request.") {
		h.Errorf("%q is no refusal", a.Body)
	}
	core.SetDefault(h.locker)
	defer core.SetDefault(nil)
	h.want(h.post(url, ""), http.StatusOK)
}

func refusals[M any](h *harness[M]) {
	inJSON := []string{"Content-Type", "application/json"}
	encoded := append([]string{"Content-Encoding", "br"}, inJSON...)
	for name, c := range map[string]struct {
		key    keyfunc.Func[keyfunc.Request]
		path   string
		header []string
		body   string
		want   int
	}{
		"malformed":              {orderID, "/orders/forty-two", nil, "", 400},
		"a path past the key":    {orderID, "/orders/42/..;/43", nil, "", 400},
		"header missing":         {keyfunc.Header("X-Order"), "/orders/42", nil, "", 400},
		"header twice":           {keyfunc.Header("X-Order"), "/orders/42", []string{"X-Order", "42", "X-Order", "43"}, "", 400},
		"cookie twice":           {keyfunc.Cookie("order"), "/orders/42", []string{"Cookie", "order=42; order=43"}, "", 400},
		"cookie twice, one odd":  {keyfunc.Cookie("order"), "/orders/42", []string{"Cookie", "order=café; order=42"}, "", 400},
		"query twice":            {keyfunc.Query("id"), "/orders/42?id=42&id=43", nil, "", 400},
		"query with a semicolon": {keyfunc.Query("id"), "/orders/42?id=42;id=43", nil, "", 400},
		"JSON twice":             {keyfunc.JSON("id"), "/orders/42", inJSON, `{"id":42,"id":43}`, 400},
		"encoded body":           {keyfunc.JSON("id"), "/orders/42", encoded, `{"id":42}`, 400},
		"body too large":         {keyfunc.JSON("id", keyfunc.MaxBytes(4)), "/orders/42", inJSON, `{"id":42}`, 413},
		"empty key":              {func(keyfunc.Request) (string, error) { return "", nil }, "/orders/42", nil, "", 400},
		"own error": {func(keyfunc.Request) (string, error) {
			return "42", errors.New("lock 42 has no key")
		}, "/orders/42", nil, "", 400},
		"query name with brackets": {keyfunc.Query("id"), "/orders/42?id=1&id[]=43", nil, "", 400},
		"query name, nested":       {keyfunc.Query("order.id"), "/orders/42?order.id=1&order%5Bid%5D=43", nil, "", 400},
		"query name, proto":        {keyfunc.Query("orderID"), "/orders/42?orderID=1&order_i_d=43", nil, "", 400},
		"cookie name":              {keyfunc.Cookie("id"), "/orders/42", []string{"Cookie", "id=1; ID=43"}, "", 400},
		"JSON name":                {keyfunc.JSON("orderID"), "/orders/42", inJSON, `{"orderID":"1","order_id":"43"}`, 400},
	} {
		guard := h.With(h.locker).By(c.key)
		ran := func(Call) { h.Errorf("%s: the handler ran", name) }
		url := h.Serve(h.T, Route[M]{"/orders/{orderID}", guard, ran}, Route[M]{"/orders/{orderID}/{more}/{most}", guard, ran})
		h.want(h.post(url+c.path, c.body, c.header...), c.want)
	}
}

// misplaced has routes that declare "orderID", and one that does not declare it.
func misplaced[M any](h *harness[M]) {
	with, mistake := h.With(h.locker), http.StatusInternalServerError
	for name, c := range map[string]struct {
		guard M
		path  string
		want  int
	}{
		"declared":                {with.ByParam("orderID"), "/orders/42", http.StatusOK},
		"not at all":              {with.ByParam("orderID"), "/users/42", mistake},
		"other spelling":          {with.ByParam("orderid"), "/orders/42", mistake},
		"other spelling, By":      {with.By(keyfunc.Param("order_id")), "/orders/42", mistake},
		"other spelling, skipped": {with.By(keyfunc.Optional(keyfunc.Param("order-ID"))), "/orders/42", mistake},
		"one of two spellings": {with.By(func(r keyfunc.Request) (string, error) {
			r.Param("order_id")
			return keyfunc.Param("orderID")(r)
		}), "/orders/42", http.StatusOK},
	} {
		url := h.Serve(h.T, Route[M]{"/orders/{orderID}", c.guard, func(Call) {
			if c.want != http.StatusOK {
				h.Errorf("%s: the handler ran", name)
			}
		}}, Route[M]{"/users/{userID}", c.guard, nothing})
		if a := h.post(url+c.path, ""); a.Status != c.want {
			h.Errorf("%s: %v, want %d", name, a, c.want)
		}
	}
	others := mistake
	if h.PassesOthers {
		others = http.StatusOK
	}
	guard := with.ByParam("orderID")
	url := h.Serve(h.T, Route[M]{"/orders/{orderID}", guard, nothing}, Route[M]{"/users/{userID}", guard, nothing})
	h.want(h.post(url+"/orders/42", ""), http.StatusOK)
	h.want(h.post(url+"/users/42", ""), others)
}

func byFunctions[M any](h *harness[M]) {
	with := h.With(h.locker)
	for key, guard := range map[string]M{
		"orderID=42":        with.ByParam("orderID"),
		"X-User-Id=u1":      with.ByHeader("x-user-id"),
		"line=7":            with.ByQuery("line"),
		"order:42:user:u1":  with.ByTemplate("order:{param.orderID}:user:{header.X-User-ID}"),
		"orderID=42:line=7": with.By(keyfunc.Join(keyfunc.Param("orderID"), keyfunc.Query("line"))),
		"true": with.By(func(r keyfunc.Request) (string, error) { // what one part has read of the body is there for the next
			first := r.HTTP()
			return strconv.FormatBool(first == r.HTTP()), nil
		}),
	} {
		url := h.serve(guard, func(c Call) {
			if lock, held := core.FromContext(c.Context()); !held || lock.Key() != key {
				h.Errorf("the lock is %v, want %s", lock, key)
			}
		})
		h.want(h.post(url+"?line=7", "", "X-User-ID", "u1"), http.StatusOK)
	}
	// A path that can be read in two ways is no matter where the key is of something else.
	url := h.Serve(h.T, Route[M]{"/orders/{orderID}/{more}/{most}", with.ByHeader("X-User-ID"), nothing})
	h.want(h.post(url+"/orders/42/..;/43", "", "X-User-ID", "u1"), http.StatusOK)
}

func overrides[M any](h *harness[M]) {
	locktest.Hold(h.T, h.locker, "orderID=42")
	common := h.With(h.locker, core.NoWait())
	h.want(h.post(h.serve(common.By(orderID), h.never), ""), http.StatusConflict)
	if waited := h.heard.Next(h.T, core.EventBusy).Waited; waited > 10*time.Second {
		h.Errorf("NoWait has waited for %v", waited)
	}
	url := h.serve(common.By(orderID, core.Wait(time.Millisecond)), h.never)
	h.want(h.post(url, ""), http.StatusConflict)
	h.heard.Next(h.T, core.EventWaiting)
}

func badSetUp[M any](h *harness[M]) {
	for name, setUp := range map[string]func(){
		"no key":          func() { h.With(nil).By(nil) },
		"no keys":         func() { h.With(nil).ByAll(nil) },
		"nothing":         func() { h.New(Config{}) },
		"both":            func() { h.New(Config{Key: orderID, Param: "orderID"}) },
		"bad option":      func() { h.With(nil).By(orderID, core.Lease(0)) },
		"bad common one":  func() { h.With(nil, core.Lease(0)) },
		"Owner":           func() { h.With(nil).By(orderID, core.Owner("me")) },
		"sign":            func() { h.With(nil).ByParam(":orderID") },
		"no name":         func() { h.With(nil).ByParam("") },
		"bad template":    func() { h.With(nil).ByTemplate("order:{param.orderID") },
		"two forms":       func() { h.New(Config{Key: orderID, Shared: true, Permits: 2}) },
		"weight, no form": func() { h.New(Config{Key: orderID, Weight: 2}) },
	} {
		func() {
			defer func() {
				said, _ := recover().(string)
				if !strings.HasPrefix(said, h.Name) || name == "bad template" && !strings.HasPrefix(said, h.Name+": ByTemplate: ") {
					h.Errorf("%s: panic %q", name, said)
				}
			}()
			setUp()
		}()
	}
}

func told[M any](h *harness[M]) {
	url := h.serve(h.by(core.NoWait()), h.never)
	release := locktest.Hold(h.T, h.locker, "orderID=42")
	h.want(h.post(url, ""), http.StatusConflict)
	refused := h.heard.Next(h.T, core.EventRefused)
	if refused.Status != http.StatusConflict || refused.Name != "orderID" || refused.Reason == "" {
		h.Errorf("event %+v", refused)
	}
	release()
	for _, own := range []error{keyfunc.ErrMissing, keyfunc.ErrNotSetUp} { // others count as malformed
		url = h.serve(h.With(h.locker).By(func(keyfunc.Request) (string, error) { return "", own }), h.never)
		h.post(url, "")
		if err := h.heard.Next(h.T, core.EventRefused).Err; !errors.Is(err, own) || errors.Is(err, keyfunc.ErrMalformed) {
			h.Errorf("error %v, want %v", err, own)
		}
	}
	before := h.log.Count("level=ERROR")
	url = h.serve(h.With(h.locker).ByParam("orderid"), h.never)
	h.want(h.post(url, ""), http.StatusInternalServerError)
	if n := h.log.Count("level=ERROR") - before; n != 1 {
		h.Errorf("%d errors in the log", n)
	}
}
