package connectlock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/adapters/connectlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

var background = context.Background()

func nothing(context.Context, string) (int64, error) { return 0, nil }

// parking returns a handler that says that it has entered, and stays.
func parking() (handle func(context.Context, string) (int64, error), entered chan string, leave chan struct{}) {
	entered, leave = make(chan string, 10), make(chan struct{})
	return func(_ context.Context, order string) (int64, error) {
		entered <- order
		<-leave
		return 0, nil
	}, entered, leave
}

func TestOneCallAtATime(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	handle, entered, leave := parking()
	client := serve(t, service{pay: handle}, guarded(locker, core.Wait(overhttp.Patience)))
	done := make(chan error, 3)
	send := func(id string) {
		_, err := client.pay.CallUnary(background, order(id))
		done <- err
	}
	go send("42")
	overhttp.Receive(t, entered, "the first call")
	heard.Next(t, core.EventWaiting)
	go send("+042") // the same order
	heard.Next(t, core.EventWaiting)
	go send("43") // another one runs beside it
	if id := overhttp.Receive(t, entered, "the call for another order"); id != "43" {
		t.Fatalf("order %s runs beside order 42", id)
	}
	leave <- struct{}{}
	leave <- struct{}{}
	if id := overhttp.Receive(t, entered, "the second call"); id != "+042" {
		t.Errorf("order %s", id)
	}
	leave <- struct{}{}
	for range 3 {
		wantCode(t, overhttp.Receive(t, done, "the answers"), 0)
	}
}

func TestRefusals(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	down, _ := overhttp.NewLocker(t)
	locktest.Outage(t, down)
	locktest.Hold(t, locker, "orderID=42", core.FixedLease(20*time.Second))
	by := func(key keyfunc.Func[call]) connect.HandlerOption {
		return connect.WithInterceptors(connectlock.By(locker, pay, key))
	}
	for name, c := range map[string]struct {
		guard connect.HandlerOption
		order string
		want  connect.Code
		retry time.Duration // at most; 0: not
	}{
		"busy":      {guarded(locker, core.NoWait()), "42", connect.CodeAborted, 20 * time.Second},
		"no permit": {guarded(locker, core.NoWait(), core.Permits(2)), "42", connect.CodeResourceExhausted, 20 * time.Second},
		"an outage": {guarded(down), "42", connect.CodeUnavailable, time.Second},
		"missing":   {guarded(locker), "", connect.CodeInvalidArgument, 0},
		"malformed": {guarded(locker), "forty-two", connect.CodeInvalidArgument, 0},
		"any error": {by(func(call) (string, error) { return "42", errors.New("orderID 42") }), "42", connect.CodeInvalidArgument, 0},
		"empty key": {by(func(call) (string, error) { return "", nil }), "42", connect.CodeInvalidArgument, 0},
		"no Locker": {guarded(nil), "42", connect.CodeInternal, 0},
	} {
		t.Run(name, func(t *testing.T) {
			never := func(context.Context, string) (int64, error) { t.Error("the handler ran"); return 0, nil }
			client := serve(t, service{pay: never}, c.guard)
			_, err := client.pay.CallUnary(background, order(c.order))
			wantCode(t, err, c.want)
			if after := retryAfter(t, err); after > c.retry || (after > 0) != (c.retry > 0) {
				t.Errorf("retry after %v", after)
			}
			var answer *connect.Error
			if errors.As(err, &answer) && (answer.Meta().Get("Retry-After") != "") != (c.retry > 0) {
				t.Errorf("Retry-After %q", answer.Meta().Get("Retry-After"))
			}
		})
	}
}

// What a handler hears of a lock of its own is answered likewise.
func TestOverloadIsUnavailableForLonger(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	for after, want := range map[time.Duration]string{20 * time.Millisecond: "1", 3200 * time.Millisecond: "4"} {
		overloaded := errors.Join(core.ErrOverloaded, &core.LockError{RetryAfter: after})
		client := serve(t, service{pay: func(context.Context, string) (int64, error) { return 0, overloaded }}, guarded(locker))
		_, err := client.pay.CallUnary(background, order("42"))
		wantCode(t, err, connect.CodeUnavailable)
		var answer *connect.Error
		if errors.As(err, &answer) && answer.Meta().Get("Retry-After") != want || retryAfter(t, err) != max(after, time.Second) {
			t.Errorf("after %v: Retry-After %q, %v", after, answer.Meta().Get("Retry-After"), retryAfter(t, err))
		}
	}
}

func TestDefaultLocker(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	core.SetDefault(locker)
	t.Cleanup(func() { core.SetDefault(nil) })
	_, err := serve(t, service{pay: nothing}, guarded(nil)).pay.CallUnary(background, order("42"))
	wantCode(t, err, 0)
	if e := heard.Next(t, core.EventAcquired); e.Key != "orderID=42" || e.Name != "test.Orders/Pay" {
		t.Errorf("key %s, name %s", e.Key, e.Name)
	}
}

// What a handler has of another type than the generated code is a mistake in the set-up.
func TestOtherTypes(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	unary := connect.NewUnaryHandler(pay, func(context.Context, *connect.Request[number]) (*connect.Response[number], error) {
		t.Error("the handler ran")
		return connect.NewResponse(new(number)), nil
	}, guarded(locker))
	client, url := serveAll(t, unary)
	_, err := connect.NewClient[text, number](client, url+pay).CallUnary(background, order("42"))
	wantCode(t, err, connect.CodeInternal)
	stream := connect.NewClientStreamHandler(load, func(_ context.Context, s *connect.ClientStream[struct{}]) (*connect.Response[number], error) {
		s.Receive()
		return nil, s.Err()
	}, guarded(locker))
	client, url = serveAll(t, stream)
	sending := connect.NewClient[text, number](client, url+load).CallClientStream(background)
	_ = sending.Send(order("42").Msg)
	_, err = sending.CloseAndReceive()
	wantCode(t, err, connect.CodeInternal)
}

// Other procedures pass, calls of a client do, and what keyfunc.Optional lets pass.
func TestWhatPasses(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	guard := connectlock.By(locker, pay, keyfunc.Optional(func(call) (string, error) { return "", nil }))
	client := serve(t, service{pay: nothing}, connect.WithInterceptors(guard))
	_, err := client.pay.CallUnary(background, order("42"))
	wantCode(t, err, 0)
	_, err = client.cancel.CallUnary(background, order("42"))
	wantCode(t, err, 0)
	httpClient, url := serveAll(t, connect.NewUnaryHandler(pay, func(context.Context, *connect.Request[text]) (*connect.Response[number], error) {
		return connect.NewResponse(new(number)), nil
	}))
	inClient := connect.WithInterceptors(connectlock.By(locker, pay, orderID))
	_, err = connect.NewClient[text, number](httpClient, url+pay, inClient).CallUnary(background, order("42"))
	wantCode(t, err, 0)
	if len(heard) > 0 {
		t.Errorf("a lock was taken: %v", <-heard)
	}
}

// What a key is made of.
func TestCall(t *testing.T) {
	type mine struct{}
	locker, _ := overhttp.NewLocker(t)
	key := func(c call) (string, error) {
		if c.Context.Value(mine{}) == nil || c.Peer.Addr == "" {
			t.Errorf("call %+v", c)
		}
		return c.Header.Get("X-User") + c.Message.GetValue(), nil
	}
	outside := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			return next(context.WithValue(ctx, mine{}, 1), r)
		}
	})
	client := serve(t, service{pay: func(ctx context.Context, _ string) (int64, error) {
		if lock, held := core.FromContext(ctx); !held || lock.Key() != "u7:42" {
			t.Errorf("the lock is %v", lock)
		}
		return 0, nil
	}}, connect.WithInterceptors(outside, connectlock.By(locker, pay, key)))
	r := order("42")
	r.Header().Set("X-User", "u7:")
	_, err := client.pay.CallUnary(background, r)
	wantCode(t, err, 0)
}

// A window opens after a success only.
func TestWindow(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	var works atomic.Bool
	client := serve(t, service{pay: func(context.Context, string) (int64, error) {
		if !works.Load() {
			return 0, errors.New("a failure")
		}
		return 0, nil
	}}, guarded(locker, core.NoWait(), core.KeepFor(time.Hour)))
	for _, want := range []connect.Code{connect.CodeUnknown, 0, connect.CodeAborted} {
		_, err := client.pay.CallUnary(background, order("42"))
		wantCode(t, err, want)
		works.Store(true)
		if after := retryAfter(t, err); want == connect.CodeAborted && after < time.Minute {
			t.Errorf("retry after %v: the window is an hour", after)
		}
	}
}

func TestPanicReleases(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	recovers := connect.WithRecover(func(context.Context, connect.Spec, http.Header, any) error {
		return connect.NewError(connect.CodeDataLoss, errors.New("panic"))
	})
	panics := func(context.Context, string) (int64, error) { panic("boom") }
	client := serve(t, service{pay: panics}, recovers, guarded(locker, core.KeepFor(time.Hour)))
	_, err := client.pay.CallUnary(background, order("42"))
	wantCode(t, err, connect.CodeDataLoss)
	overhttp.WantFree(t, locker)
}

// What a handler says about the end of its lock is answered as a refusal is, unless it says something of its own.
func TestLoss(t *testing.T) {
	halfDone := connect.NewError(connect.CodeDataLoss, errors.New("half done"))
	for name, c := range map[string]struct {
		report func(context.Context) error
		want   connect.Code
	}{
		"cause":          {context.Cause, connect.CodeUnavailable},
		"context":        {context.Context.Err, connect.CodeUnavailable},
		"own code":       {func(context.Context) error { return halfDone }, connect.CodeDataLoss},
		"done meanwhile": {func(context.Context) error { return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := overhttp.NewLocker(t)
			client := serve(t, service{pay: func(ctx context.Context, _ string) (int64, error) {
				locktest.Lose(t, locker, "orderID=42")
				overhttp.Receive(t, ctx.Done(), "the end of the context")
				return 0, c.report(ctx)
			}}, guarded(locker))
			_, err := client.pay.CallUnary(background, order("42"))
			wantCode(t, err, c.want)
		})
	}
}

// A handler may take the lock again, and is not told apart from a stranger for others.
func TestLocksInside(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	locktest.Hold(t, locker, "stock:42")
	client := serve(t, service{pay: func(ctx context.Context, _ string) (int64, error) {
		if err := locker.Do(ctx, "orderID=42", func(context.Context) error { return nil }, core.NoWait()); err != nil {
			t.Errorf("re-entry: %v", err)
		}
		return 0, locker.Do(ctx, "stock:42", func(context.Context) error { return nil }, core.NoWait())
	}}, guarded(locker))
	_, err := client.pay.CallUnary(background, order("42"))
	wantCode(t, err, connect.CodeAborted)
}

func TestCancelEndsTheWait(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	client := serve(t, service{pay: nothing}, guarded(locker, core.Wait(overhttp.Patience)))
	release := locktest.Hold(t, locker, "orderID=42")
	heard.Next(t, core.EventAcquired) // by Hold
	ctx, cancel := context.WithCancel(background)
	done := make(chan error, 1)
	go func() {
		_, err := client.pay.CallUnary(ctx, order("42"))
		done <- err
	}()
	heard.Next(t, core.EventWaiting)
	cancel()
	wantCode(t, overhttp.Receive(t, done, "the answer"), connect.CodeCanceled)
	if reason := heard.Next(t, core.EventBusy).Reason; reason != "canceled" {
		t.Errorf("the wait ended with %q", reason)
	}
	release()
	overhttp.WantFree(t, locker)
}

// What ends the call's context outside ends its wait.
func TestContextEndsWhileWaiting(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	locktest.Hold(t, locker, "orderID=42")
	for want, end := range map[connect.Code]func(context.Context) (context.Context, context.CancelFunc){
		connect.CodeDeadlineExceeded: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadline(ctx, time.Now())
		},
		connect.CodeCanceled: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		},
	} {
		outside := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
				ctx, cancel := end(ctx)
				defer cancel()
				return next(ctx, r)
			}
		})
		_, err := serve(t, service{pay: nothing}, connect.WithInterceptors(outside), guarded(locker)).pay.CallUnary(background, order("42"))
		wantCode(t, err, want)
	}
}

// The log has a mistake in the set-up once, Observers all refusals, and interceptors outside the reason.
func TestWhoIsToldOfRefusals(t *testing.T) {
	var text bytes.Buffer
	locker, heard := overhttp.NewLocker(t, core.Logger(slog.New(slog.NewTextHandler(&text, nil))))
	reasons := make(chan error, 3)
	outside := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			response, err := next(ctx, r)
			reasons <- err
			return response, err
		}
	})
	locktest.Hold(t, locker, "orderID=42")
	client := serve(t, service{}, connect.WithInterceptors(outside), guarded(locker, core.NoWait()))
	_, err := client.pay.CallUnary(background, order("42"))
	wantCode(t, err, connect.CodeAborted)
	if err := <-reasons; !errors.Is(err, core.ErrNotAcquired) {
		t.Errorf("error %v", err)
	}
	if e := heard.Next(t, core.EventRefused); e.Name != "test.Orders/Pay" || e.Reason == "" {
		t.Errorf("event %+v", e)
	}
	shared := connectlock.By(locker, pay, orderID, core.Shared())
	client = serve(t, service{pay: nothing}, connect.WithInterceptors(outside, shared), guarded(locker))
	for range 2 { // a guard inside of another that wants the lock in another form
		_, err = client.pay.CallUnary(background, order("43"))
		wantCode(t, err, connect.CodeInternal)
	}
	if n := strings.Count(text.String(), "misconfigured"); n != 1 {
		t.Errorf("%d lines: %s", n, text.String())
	}
}

// What would leave a procedure unguarded ends the program when it starts.
func TestBadSetUpPanics(t *testing.T) {
	for name, setUp := range map[string]func(){
		"no such procedure": func() { connectlock.By(nil, "/test.Orders/Pya", orderID) },
		"no slash":          func() { connectlock.By(nil, "test.Orders/Pay", orderID) },
		"a service":         func() { connectlock.By(nil, "/test.Orders", orderID) },
		"other message": func() {
			connectlock.By(nil, pay, func(connectlock.Call[*number]) (string, error) { return "", nil })
		},
		"any message": func() {
			connectlock.By(nil, pay, func(connectlock.Call[proto.Message]) (string, error) { return "", nil })
		},
		"no key":     func() { connectlock.By[*text](nil, pay, nil) },
		"bad option": func() { connectlock.By(nil, pay, orderID, core.Lease(0)) },
		"Owner":      func() { connectlock.By(nil, pay, orderID, core.Owner("me")) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.HasPrefix(said, "connectlock: ") {
					t.Errorf("%s: panic %q", name, said)
				}
			}()
			setUp()
		}()
	}
}
