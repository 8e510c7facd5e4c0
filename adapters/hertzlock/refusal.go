package hertzlock

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/cloudwego/hertz/pkg/app"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/httplock"
)

// problem is the body of RFC 9457.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Part   string `json:"part,omitempty"`
}

// refusal has a text that may be shown, and the reason for the middleware outside.
type refusal struct {
	problem
	reason error
}

func (r *refusal) Error() string { return r.Detail }
func (r *refusal) Unwrap() error { return r.reason }

// statusClientGone is never seen by a client.
const statusClientGone = 499

// refuse answers a request that does not run, leaves the reason in c.Errors for the middleware outside, and reports it to
// Observers and the log.
func (g *guard) refuse(ctx context.Context, c *app.RequestContext, err error, opts []core.Option) {
	status, retryAfter := httplock.StatusOf(err)
	locker := g.locker()
	if locker != nil {
		adapter.Notify(ctx, locker, core.Event{Kind: core.EventRefused, Status: status, Err: err}, opts...)
	}
	if status == http.StatusInternalServerError {
		g.told.Do(func() {
			adapter.LoggerOf(locker).ErrorContext(context.WithoutCancel(ctx),
				"latchkey: a request was refused because the middleware is misconfigured", "route", c.FullPath(), "error", err)
		})
	}
	code, text := httplock.ReasonOf(err)
	answer := &refusal{problem{"about:blank", http.StatusText(status), status, text, code, httplock.PartOf(err)}, err}
	if retryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	}
	c.Abort()
	_ = c.Error(answer)
	c.SetStatusCode(status)
	switch body, err := json.Marshal(answer.problem); {
	case status == statusClientGone:
	case g.OnRefused != nil:
		g.OnRefused(ctx, c, answer)
	case err == nil:
		c.Data(status, "application/problem+json", body)
	}
}
