package grpclock_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/adapters/grpclock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

var background = context.Background()

// parking returns a handler that says that it has entered, and stays.
func parking() (handler func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error), entered chan string, leave chan struct{}) {
	entered, leave = make(chan string, 10), make(chan struct{})
	return func(_ context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		entered <- string(r.GetPayload().GetBody())
		<-leave
		return &pb.SimpleResponse{}, nil
	}, entered, leave
}

func TestOneCallAtATime(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	handler, entered, leave := parking()
	client := serve(t, &service{unary: handler}, guards(locker, core.Wait(overhttp.Patience))...)
	done := make(chan error, 3)
	send := func(order string) {
		_, err := client.UnaryCall(background, call(order))
		done <- err
	}
	go send("42")
	overhttp.Receive(t, entered, "the first call")
	heard.Next(t, core.EventWaiting)
	go send("+042") // the same order
	heard.Next(t, core.EventWaiting)
	go send("43") // another one runs beside it
	if order := overhttp.Receive(t, entered, "the call for another order"); order != "43" {
		t.Fatalf("order %s runs beside order 42", order)
	}
	leave <- struct{}{}
	leave <- struct{}{}
	if order := overhttp.Receive(t, entered, "the second call"); order != "+042" {
		t.Errorf("order %s", order)
	}
	leave <- struct{}{}
	for range 3 {
		if err := overhttp.Receive(t, done, "the answers"); err != nil {
			t.Error(err)
		}
	}
}

func TestBusyIsAborted(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, &service{}, guards(locker, core.NoWait())...)
	locktest.Hold(t, locker, "orderID=42")

	_, err := client.UnaryCall(background, call("42"))
	wantCode(t, err, codes.Aborted)
	details := status.Convert(err).Details()
	if len(details) != 1 {
		t.Fatalf("details %v", details)
	}
	info, ok := details[0].(*errdetails.RetryInfo)
	if !ok || info.GetRetryDelay().AsDuration() <= 0 || info.GetRetryDelay().AsDuration() > time.Second {
		t.Errorf("details %v", details)
	}
}

func TestRefusals(t *testing.T) {
	hand := func(key keyfunc.Func[grpclock.Call[*pb.SimpleRequest]]) func(*core.Locker) []grpc.ServerOption {
		return func(locker *core.Locker) []grpc.ServerOption {
			return []grpc.ServerOption{grpc.UnaryInterceptor(grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, key))}
		}
	}
	for name, c := range map[string]struct {
		server func(*core.Locker) []grpc.ServerOption
		order  string
		want   codes.Code
	}{
		"missing":   {func(l *core.Locker) []grpc.ServerOption { return guards(l) }, "", codes.InvalidArgument},
		"malformed": {func(l *core.Locker) []grpc.ServerOption { return guards(l) }, "forty-two", codes.InvalidArgument},
		"ambiguous": {hand(func(grpclock.Call[*pb.SimpleRequest]) (string, error) { return "", keyfunc.ErrAmbiguous }), "42", codes.InvalidArgument},
		"any error": {hand(func(grpclock.Call[*pb.SimpleRequest]) (string, error) { return "42", errors.New("orderID 42") }), "42", codes.InvalidArgument},
		"empty key": {hand(func(grpclock.Call[*pb.SimpleRequest]) (string, error) { return "", nil }), "42", codes.InvalidArgument},
		"no Locker": {func(*core.Locker) []grpc.ServerOption { return guards(nil) }, "42", codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := overhttp.NewLocker(t)
			client := serve(t, &service{}, c.server(locker)...)
			_, err := client.UnaryCall(background, call(c.order))
			wantCode(t, err, c.want)
		})
	}
}

func TestOutageIsUnavailable(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, &service{}, guards(locker)...)
	locktest.Outage(t, locker)
	_, err := client.UnaryCall(background, call("42"))
	wantCode(t, err, codes.Unavailable)
}

// What a handler hears of a lock of its own is answered likewise.
func TestOverloadIsUnavailableForLonger(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	for after, want := range map[time.Duration]time.Duration{20 * time.Millisecond: time.Second, 3200 * time.Millisecond: 3200 * time.Millisecond} {
		overloaded := errors.Join(core.ErrOverloaded, &core.LockError{RetryAfter: after})
		client := serve(t, &service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { return nil, overloaded }}, guards(locker)...)
		_, err := client.UnaryCall(background, call("42"))
		wantCode(t, err, codes.Unavailable)
		details := status.Convert(err).Details()
		if len(details) != 1 || details[0].(*errdetails.RetryInfo).GetRetryDelay().AsDuration() != want {
			t.Errorf("details %v, want %v", details, want)
		}
	}
}

func TestDefaultLocker(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	core.SetDefault(locker)
	t.Cleanup(func() { core.SetDefault(nil) })
	handler, _, leave := parking()
	close(leave)
	client := serve(t, &service{unary: handler}, guards(nil)...)
	if _, err := client.UnaryCall(background, call("42")); err != nil {
		t.Error(err)
	}
	if key := heard.Next(t, core.EventAcquired).Key; key != "orderID=42" {
		t.Errorf("key %s", key)
	}
}

// The log has a mistake in the set-up once, and Observers all refusals.
func TestWhoIsToldOfRefusals(t *testing.T) {
	var text bytes.Buffer
	heard := make(overhttp.Events, 1000)
	locker := locktest.New(t, core.Observe(heard), core.Logger(slog.New(slog.NewTextHandler(&text, nil))))
	handler, _, leave := parking()
	close(leave)
	shared := grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, orderID[*pb.SimpleRequest](), core.Shared())
	both := append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(shared)}, guards(locker, core.NoWait())...)
	client := serve(t, &service{unary: handler}, both...)
	for range 2 { // a guard inside of another that wants the lock in another form
		_, err := client.UnaryCall(background, call("42"))
		wantCode(t, err, codes.Internal)
	}
	if n := strings.Count(text.String(), "misconfigured"); n != 1 {
		t.Errorf("%d lines: %s", n, text.String())
	}
	_, err := client.UnaryCall(background, call("forty-two"))
	wantCode(t, err, codes.InvalidArgument)
	for range 3 {
		if e := heard.Next(t, core.EventRefused); e.Name != "grpc.testing.TestService/UnaryCall" {
			t.Errorf("event %+v", e)
		}
	}
}

func TestNoPermitIsResourceExhausted(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, &service{}, guards(locker, core.NoWait(), core.Permits(1))...)
	locktest.Hold(t, locker, "orderID=42", core.Permits(1))
	_, err := client.UnaryCall(background, call("42"))
	wantCode(t, err, codes.ResourceExhausted)
	if len(status.Convert(err).Details()) != 1 {
		t.Error("it does not say when to try again")
	}
}

// Only keyfunc.Optional lets a call pass without a lock.
func TestOptional(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	key := keyfunc.Optional(func(grpclock.Call[*pb.SimpleRequest]) (string, error) { return "", nil })
	guard := grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, key)
	handler, _, leave := parking()
	close(leave)
	client := serve(t, &service{unary: handler}, grpc.UnaryInterceptor(guard))
	if _, err := client.UnaryCall(background, call("42")); err != nil {
		t.Error(err)
	}
	if len(heard) > 0 {
		t.Errorf("a lock was taken: %v", <-heard)
	}
}

// A window opens after a success only.
func TestWindow(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	outcome := errors.New("a failure")
	client := serve(t, &service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		return &pb.SimpleResponse{}, outcome
	}}, guards(locker, core.NoWait(), core.KeepFor(time.Hour))...)
	for i, want := range []codes.Code{codes.Unknown, codes.OK, codes.Aborted} {
		if i == 1 {
			outcome = nil
		}
		_, err := client.UnaryCall(background, call("42"))
		wantCode(t, err, want)
		if i < 2 {
			continue
		}
		if info := status.Convert(err).Details()[0].(*errdetails.RetryInfo); info.GetRetryDelay().AsDuration() < time.Minute {
			t.Errorf("retry after %v: the window is an hour", info.GetRetryDelay().AsDuration())
		}
	}
}

func TestPanicReleases(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	recovers := func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
			err = status.Error(codes.Internal, "panic")
		}()
		return handler(ctx, req)
	}
	client := serve(t, &service{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) { panic("boom") }},
		append([]grpc.ServerOption{grpc.ChainUnaryInterceptor(recovers)}, guards(locker, core.KeepFor(time.Hour))...)...)
	_, err := client.UnaryCall(background, call("42"))
	wantCode(t, err, codes.Internal)
	overhttp.WantFree(t, locker)
}

func TestOtherMethodsPass(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	guard := grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, orderID[*pb.SimpleRequest]())
	client := serve(t, &service{}, grpc.UnaryInterceptor(guard))
	_, err := client.EmptyCall(background, &pb.Empty{})
	wantCode(t, err, codes.Unimplemented)
	if len(heard) > 0 {
		t.Errorf("a lock was taken: %v", <-heard)
	}
}

// What would leave a method unguarded ends the program when it starts.
func TestBadSetUpPanics(t *testing.T) {
	key := orderID[*pb.SimpleRequest]()
	streamKey := orderID[*pb.StreamingOutputCallRequest]()
	for name, setUp := range map[string]func(){
		"no such method": func() { grpclock.Unary(nil, "/grpc.testing.TestService/UnaryCal", key) },
		"no slash":       func() { grpclock.Unary(nil, "grpc.testing.TestService/UnaryCall", key) },
		"a service":      func() { grpclock.Unary(nil, "/grpc.testing.TestService", key) },
		"other message":  func() { grpclock.Unary(nil, pb.TestService_EmptyCall_FullMethodName, key) },
		"a stream": func() {
			grpclock.Unary(nil, pb.TestService_StreamingOutputCall_FullMethodName, streamKey)
		},
		"no stream": func() { grpclock.Stream(nil, pb.TestService_UnaryCall_FullMethodName, key) },
		"no key": func() {
			grpclock.Unary[*pb.SimpleRequest](nil, pb.TestService_UnaryCall_FullMethodName, nil)
		},
		"any message": func() {
			grpclock.Unary(nil, pb.TestService_UnaryCall_FullMethodName, func(grpclock.Call[proto.Message]) (string, error) { return "", nil })
		},
		"bad option": func() { grpclock.Unary(nil, pb.TestService_UnaryCall_FullMethodName, key, core.Lease(0)) },
		"Owner":      func() { grpclock.Unary(nil, pb.TestService_UnaryCall_FullMethodName, key, core.Owner("me")) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.HasPrefix(said, "grpclock: ") {
					t.Errorf("%s: panic %q", name, said)
				}
			}()
			setUp()
		}()
	}
}

// How keyfunc names the parts of a Call: a type of one's own has no names that a Join
// or an Int could see. So Named stands outside of Int, and a Join needs Const or Scope.
func TestNamesOfParts(t *testing.T) {
	type Call = grpclock.Call[*pb.SimpleRequest]
	order := func(c Call) (string, error) { return string(c.Message.GetPayload().GetBody()), nil }
	user := func(Call) (string, error) { return "7:8", nil }
	for name, c := range map[string]struct {
		key  keyfunc.Func[Call]
		want string // empty: refused
	}{
		"Named":           {keyfunc.Named("orderID", order), "orderID=042"},
		"Int in Named":    {keyfunc.Named("orderID", keyfunc.Int(order)), "orderID=42"},
		"Named in Int":    {keyfunc.Int(keyfunc.Named("orderID", order)), ""},
		"Join":            {keyfunc.Join(keyfunc.Const[Call]("cart"), user, keyfunc.Int(order)), `cart:7\:8:42`},
		"Named in a Join": {keyfunc.Join(keyfunc.Const[Call]("cart"), keyfunc.Named("orderID", order)), `cart:orderID\=042`},
		"Scope":           {keyfunc.Scope("order", keyfunc.Int(order)), "order:42"},
		"Hash":            {keyfunc.Named("token", keyfunc.Hash(order)), "token=" + sha256of042},
	} {
		t.Run(name, func(t *testing.T) {
			key, err := c.key(Call{Context: background, Message: call("042")})
			if key != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%q, %v; want %q", key, err, c.want)
			}
		})
	}
}

const sha256of042 = "19158c4a7252e121f7367e7e86a3baabbf93fded76110076cfab2b31eb7df887"
