package faults

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/httplock"
	"github.com/latchkey-go/latchkey/internal/checker"
	"github.com/latchkey-go/latchkey/internal/redistest"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Requests with an Idempotency-Key, which all workers send, some of them long after the first.

const (
	requests    = 30                     // of the operations, in per cent
	impatient   = 20                     // of the requests, in per cent: their clients leave
	newRequest  = 250 * time.Millisecond // how often there is a new one
	longestAgo  = 4 * time.Second        // since when a request is sent
	answersKept = time.Hour
)

// countsOnce says whether Redis keeps answers. A quorum takes none, and a failover may lose what
// outlasts it.
func (w *worker) countsOnce() bool { return w.setup.Members == 1 && w.setup.Redis.Replicas == 0 }

// requester is what an actor has to send requests.
type requester struct {
	shop  http.Handler
	since int64           // the time of the oldest request to send
	keys  []string        // of those that were sent
	sent  *record         // the one that is sent
	asked context.Context // of the client that sends it, and may leave
}

// begin has the actor send requests of its round.
func (a *actorState) begin() {
	a.since = now()
	a.shop = a.worker.idempotent(a.attempt, core.Lease(a.order.Lease), core.Wait(200*time.Millisecond))
}

func (w *worker) idempotent(handler http.HandlerFunc, opts ...core.Option) http.Handler {
	return httplock.New(httplock.Config{
		Locker:     w.locker,
		Idempotent: &httplock.Idempotency{Scope: keyfunc.Const[keyfunc.Request]("crew"), StoreFor: answersKept},
		Options:    opts,
	})(handler)
}

func sendRequest(ctx context.Context, shop http.Handler, key string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, "POST", "/", nil)
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	shop.ServeHTTP(w, r)
	return w
}

// anyRequest is the key of one that others send, too, or of a call: mostly a new one.
func (a *actorState) anyRequest() string {
	at := now()
	ago := a.random.Float64() * a.random.Float64() * float64(min(at-a.since, int64(longestAgo)))
	kind := "request-"
	if a.chance(calls) {
		kind = "once-"
	}
	key := fmt.Sprint(kind, (at-int64(ago))/int64(newRequest))
	if !slices.Contains(a.keys, key) {
		a.keys = append(a.keys, key)
	}
	return key
}

// sendAgain has all requests answered, or nearly all, when nothing is wrong any more.
func (a *actorState) sendAgain() {
	for _, key := range a.keys {
		a.send(key)
	}
}

func (a *actorState) send(key string) {
	if isCall(key) {
		a.callOnce(key)
		return
	}
	a.sent = a.worker.open(key, form{})
	a.sent.update(func(v *visit) { v.Request = &checker.Request{} })
	ctx, leave := a.client()
	defer leave()
	a.asked = ctx
	a.sent.answered(ctx, sendRequest(ctx, a.shop, key))
}

// client is one that may leave before it has an answer.
func (a *actorState) client() (ctx context.Context, leave func()) {
	ctx, leave = context.WithCancel(background)
	if a.chance(impatient) {
		time.AfterFunc(time.Duration(a.random.Int64N(int64(50*time.Millisecond))), leave)
	}
	return ctx, leave
}

// do is the work of an attempt.
func (a *actorState) do(k *core.Lock, number int) {
	length := a.length()
	a.sent.update(func(v *visit) { v.Request.Attempt = number })
	a.sent.returned(k, nil, length)
	careless := a.chance(30)
	found := a.worker.read(k)
	a.work(k, length, careless)
	if careless || k.Context().Err() == nil {
		a.worker.write(found)
	}
	a.sent.leave(k)
}

// attempt is the handler.
func (a *actorState) attempt(w http.ResponseWriter, r *http.Request) {
	k, _ := core.FromContext(r.Context())
	a.do(k, httplock.Attempt(r.Context()))
	if a.asked.Err() != nil && a.chance(60) {
		// Nobody has written anything: what the work came to is not known.
		a.sent.update(func(v *visit) { v.Released, v.Request.Answer = now(), "none" })
		return
	}

	answer, status := strings.Repeat(a.worker.nextID(), 1+a.random.IntN(500)), http.StatusCreated
	if a.chance(30) {
		status = http.StatusServiceUnavailable
	}
	at := now()
	a.sent.update(func(v *visit) {
		v.Released, v.Request.Failed = at, status != http.StatusCreated
		if !v.Request.Failed {
			v.Request.Answer = redistest.Digest(answer)
		}
	})
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

// answered enters what the client has got, if that has not left.
func (r *record) answered(ctx context.Context, w *httptest.ResponseRecorder) {
	at, digest := now(), redistest.Digest(w.Body.String())
	r.update(func(v *visit) {
		again := w.Header().Get("Idempotent-Replayed") != ""
		switch {
		case v.Granted():
			if w.Code == http.StatusCreated && digest != v.Request.Answer || again {
				v.Broken = "the answer to an attempt is not what the handler has written"
			}
			return
		case w.Code == http.StatusCreated && again:
			v.Request.Again, v.Request.Answer = true, digest
		case ctx.Err() != nil && !again:
			v.Refusal = "gone"
		case w.Code == http.StatusConflict && w.Header().Get("Retry-After") != "":
			v.Refusal = "busy"
		case w.Code == http.StatusServiceUnavailable:
			v.Refusal = r.excused("unavailable", v.Called, at)
		default:
			v.Broken = fmt.Sprintf("an unexpected answer (%d %.200s)", w.Code, w.Body)
		}
		v.Returned = at
	})
	r.close()
}

// unsure counts the attempts that follow one that has failed, and those of them that do not know
// what it has done.
func unsure(visits []visit) (unsure, of int) {
	byKey := map[string][]visit{}
	for _, v := range visits {
		if v.Request != nil && v.Granted() {
			byKey[v.Key] = append(byKey[v.Key], v)
		}
	}
	for _, own := range byKey {
		slices.SortFunc(own, func(a, b visit) int { return cmp.Compare(a.Token, b.Token) })
		for i := range own[1:] {
			if own[i].Request.Failed && own[i].Request.Attempt == 1 {
				of++
				if own[i+1].Request.Attempt > 1 {
					unsure++
				}
			}
		}
	}
	return unsure, of
}

const holderField = "latchkey:holder:"

func isRequest(key string) bool {
	return strings.HasPrefix(key, lockName("idempotent:")) || isCall(key)
}

// holderOf is for how long an attempt at a request still has its lock.
func holderOf(client redis.Cmdable, key string) (left time.Duration) {
	for field, value := range client.HGetAll(context.Background(), key).Val() {
		if strings.HasPrefix(field, holderField) {
			ends, _, _ := strings.Cut(value, " ")
			us, _ := strconv.ParseInt(ends, 10, 64)
			left = time.Until(time.UnixMicro(us))
		}
	}
	return left
}
