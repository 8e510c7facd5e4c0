package conformance_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// What programs find out about a refusal.
var reasonCases = []conformanceCase{
	{"StatusOf and ReasonOf know the error that OnRefused gets", func(h *harness) {
		for name, c := range map[string]struct {
			cfg    config
			target string
			status int
			after  time.Duration
			code   string
		}{
			"busy":               {config{param: "orderID"}, "/orders/42", 409, time.Second, "busy"},
			"busy, as it says":   {config{param: "orderID", status: 423}, "/orders/42", 423, time.Second, "busy"},
			"missing":            {config{key: keyfunc.Query("id")}, "/orders/1", 400, 0, "missing"},
			"misconfigured":      {config{key: keyfunc.Param("cartID")}, "/orders/1", 500, 0, "internal"},
			"Redis does not run": {config{param: "orderID", locker: unreachable(h)}, "/orders/1", 503, time.Second, "unavailable"},
		} {
			k := h.hold("orderID=42")
			cfg := c.cfg
			cfg.options = []core.Option{core.NoWait()}
			says := ""
			cfg.onRefused = func(_ http.ResponseWriter, _ *http.Request, err error) {
				if status, after := h.framework.statusOf(err); status != c.status || after != c.after {
					h.Errorf("%s: %d, %v; want %d, %v", name, status, after, c.status, c.after)
				}
				code, text := h.framework.reasonOf(err)
				if code != c.code || text != err.Error() {
					h.Errorf("%s: %q, %q; want %q, %q", name, code, text, c.code, err)
				}
				says = text
			}
			h.wantStatus(send(h.build(post("/orders/{orderID}", []guarding{{config: &cfg}}, h.never())), "POST", c.target), c.status)
			cfg.onRefused = nil
			w := send(h.build(post("/orders/{orderID}", []guarding{{config: &cfg}}, h.never())), "POST", c.target)
			if says == "" || !strings.Contains(w.Body.String(), `"detail":"`+says+`","code":"`+c.code+`"`) {
				h.Errorf("%s: the text is %q of %q, the body %s", name, says, c.code, w.Body)
			}
			h.unlock(k)
		}
	}},
	{"StatusOf and ReasonOf know the errors of core and of keyfunc", func(h *harness) {
		k := h.hold("k")
		defer h.unlock(k)
		_, busy := h.locker.TryLock(context.Background(), "k")
		h.unlock(h.hold("done", core.KeepFor(time.Minute)))
		_, done := h.locker.TryLock(context.Background(), "done")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, gone := h.locker.Lock(ctx, "k")
		_, invalid := h.locker.Lock(context.Background(), "")
		overloaded := func(after time.Duration) error {
			return errors.Join(core.ErrOverloaded, &core.LockError{RetryAfter: after})
		}
		for _, c := range []struct {
			err    error
			status int
			after  time.Duration
			code   string
		}{
			{busy, 409, time.Second, "busy"}, {done, 409, time.Minute, "done"}, {gone, 499, 0, "gone"}, {invalid, 400, 0, "too_long"},
			{core.ErrNotAcquired, 409, time.Second, "busy"},
			{core.ErrUnavailable, 503, time.Second, "unavailable"}, {core.ErrClosed, 503, time.Second, "unavailable"},
			{overloaded(20 * time.Millisecond), 503, time.Second, "unavailable"},
			{overloaded(3200 * time.Millisecond), 503, 4 * time.Second, "unavailable"},
			{core.ErrLost, 503, time.Second, "unavailable"}, {core.ErrMaxHold, 503, time.Second, "unavailable"},
			{keyfunc.ErrTooLarge, 413, 0, "too_large"}, {keyfunc.ErrMissing, 400, 0, "missing"}, {keyfunc.ErrRepeated, 400, 0, "repeated"},
			{keyfunc.ErrLetterCase, 400, 0, "letter_case"}, {keyfunc.ErrNotJSON, 400, 0, "not_json"}, {keyfunc.ErrPath, 400, 0, "path"},
			{keyfunc.ErrAmbiguous, 400, 0, "ambiguous"}, {keyfunc.ErrMalformed, 400, 0, "malformed"},
			{keyfunc.ErrNotSetUp, 500, 0, "internal"}, {errors.New("of another kind"), 500, 0, "internal"},
		} {
			if status, after := h.framework.statusOf(c.err); status != c.status || after != c.after {
				h.Errorf("%v: %d, %v; want %d, %v", c.err, status, after, c.status, c.after)
			}
			if code, text := h.framework.reasonOf(c.err); code != c.code || !strings.HasSuffix(text, ".") {
				h.Errorf("%v: %q, %q; want %q", c.err, code, text, c.code)
			}
		}
	}},
	{"the errors of refusals have no key, address or error of Redis in their texts; the log has", func(h *harness) {
		failing := func(keyfunc.Request) (string, error) { return "", errors.New("s3cret") }
		for name, c := range map[string]struct {
			cfg  config
			kind error
		}{
			"busy":               {config{param: "orderID"}, core.ErrNotAcquired},
			"Redis does not run": {config{param: "orderID", locker: unreachable(h)}, core.ErrUnavailable},
			"no key":             {config{key: failing}, nil},
		} {
			k := h.hold("orderID=s3cret")
			check := func(err error) {
				text := strings.ToLower(err.Error())
				for _, secret := range []string{"s3cret", "orderid", "127.0.0.1", "dial", "connection", "redis", "core", "latchkey"} {
					if strings.Contains(text, secret) {
						h.Errorf("%s: it tells about %q: %s", name, secret, text)
					}
				}
				if c.kind != nil && !errors.Is(err, c.kind) {
					h.Errorf("%s: it is no %v: %v", name, c.kind, err)
				}
				if code, _ := h.framework.reasonOf(err); code == "internal" {
					h.Errorf("%s: the reason is not found in %v", name, err)
				}
			}
			for _, own := range []bool{true, false} {
				seen, cfg := 0, c.cfg
				cfg.options = []core.Option{core.NoWait()}
				r := post("/orders/{orderID}", []guarding{{config: &cfg}}, h.never())
				r.failed = func(err error) {
					seen++
					check(err)
				}
				want := 0
				if own {
					want++
					cfg.onRefused = func(_ http.ResponseWriter, _ *http.Request, err error) {
						seen++
						check(err)
						h.log.reset()
						slog.Info("refused", "error", err)
						if (h.log.count("s3cret") > 0) != (c.kind != nil) {
							h.Errorf("%s: the cause is in the log, or is not", name)
						}
					}
				}
				if h.framework.hasErrors && (!own || h.framework.name == "gin") {
					want++
				}
				send(h.build(r), "POST", "/orders/s3cret")
				if seen != want {
					h.Errorf("%s: %d errors were seen, want %d", name, seen, want)
				}
			}
			h.unlock(k)
		}
	}},
}
