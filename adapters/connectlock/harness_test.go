package connectlock_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchkey-go/latchkey/adapters/connectlock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

type (
	text   = wrapperspb.StringValue
	number = wrapperspb.Int64Value
	call   = connectlock.Call[*text]
)

// The procedures of a service, as generated code has them.
const (
	pay    = "/test.Orders/Pay"
	load   = "/test.Orders/Load"  // the client streams
	watch  = "/test.Orders/Watch" // the server does
	talk   = "/test.Orders/Talk"  // both do
	cancel = "/test.Orders/Cancel"
)

func TestMain(m *testing.M) {
	method := func(procedure string, clientStreams, serverStreams bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name:      proto.String(procedure[strings.LastIndex(procedure, "/")+1:]),
			InputType: proto.String(".google.protobuf.StringValue"), OutputType: proto.String(".google.protobuf.Int64Value"),
			ClientStreaming: &clientStreams, ServerStreaming: &serverStreams,
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("test/orders.proto"), Package: proto.String("test"), Dependency: []string{"google/protobuf/wrappers.proto"},
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Orders"), Method: []*descriptorpb.MethodDescriptorProto{
			method(pay, false, false), method(load, true, false), method(watch, false, true), method(talk, true, true),
			method(cancel, false, false),
		}}},
	}, protoregistry.GlobalFiles)
	if err == nil {
		err = protoregistry.GlobalFiles.RegisterFile(file)
	}
	if err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// orderID makes the keys of keyfunc.Param("orderID").
var orderID = keyfunc.Named("orderID", keyfunc.Int(func(c call) (string, error) { return c.Message.GetValue(), nil }))

// service has a method for each kind of handler.
type service struct {
	pay   func(context.Context, string) (int64, error)
	load  func(context.Context, *connect.ClientStream[text]) (*connect.Response[number], error)
	watch func(context.Context, *connect.Request[text], *connect.ServerStream[number]) error
	talk  func(context.Context, *connect.BidiStream[text, number]) error
}

// guarded are interceptors for all but Cancel.
func guarded(locker *core.Locker, opts ...core.Option) connect.HandlerOption {
	return connect.WithInterceptors(connectlock.By(locker, pay, orderID, opts...), connectlock.By(locker, load, orderID, opts...),
		connectlock.By(locker, watch, orderID, opts...), connectlock.By(locker, talk, orderID, opts...))
}

// clients are those of the procedures.
type clients struct{ pay, load, watch, talk, cancel *connect.Client[text, number] }

// serve returns clients of the service, which runs until the test ends.
func serve(t *testing.T, s service, options ...connect.HandlerOption) clients {
	t.Helper()
	unary := func(ctx context.Context, r *connect.Request[text]) (*connect.Response[number], error) {
		n, err := s.pay(ctx, r.Msg.GetValue())
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(wrapperspb.Int64(n)), nil
	}
	mux := http.NewServeMux()
	mux.Handle(pay, connect.NewUnaryHandler(pay, unary, options...))
	mux.Handle(cancel, connect.NewUnaryHandler(cancel, unary, options...))
	mux.Handle(load, connect.NewClientStreamHandler(load, s.load, options...))
	mux.Handle(watch, connect.NewServerStreamHandler(watch, s.watch, options...))
	mux.Handle(talk, connect.NewBidiStreamHandler(talk, s.talk, options...))
	client, url := serveAll(t, mux)
	of := func(procedure string) *connect.Client[text, number] {
		return connect.NewClient[text, number](client, url+procedure)
	}
	return clients{of(pay), of(load), of(watch), of(talk), of(cancel)}
}

// serveAll returns what clients of a server need, which runs until the test ends.
func serveAll(t *testing.T, handler http.Handler) (client *http.Client, url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Client(), server.URL
}

func order(id string) *connect.Request[text] { return connect.NewRequest(wrapperspb.String(id)) }

// wantCode checks what a client gets. 0 is no error.
func wantCode(t *testing.T, err error, want connect.Code) {
	t.Helper()
	var answer *connect.Error
	if !errors.As(err, &answer) {
		if err != nil || want != 0 {
			t.Errorf("error %v, want %v", err, want)
		}
		return
	}
	if answer.Code() != want || want == connect.CodeInternal && !connect.IsWireError(err) { // as when a handler panics
		t.Errorf("error %v, want %v", err, want)
	}
	if !connect.IsWireError(err) {
		return // the client's own, which has its server's port
	}
	for _, secret := range []string{"orderID", "42", "core:", "LOADING", "keyfunc", "lock"} {
		if strings.Contains(answer.Message(), secret) {
			t.Errorf("the client is told %q: %v", secret, err)
		}
	}
}

// retryAfter returns after how long a refusal has its call tried again, 0 if it does not say so.
func retryAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	var answer *connect.Error
	if !errors.As(err, &answer) || len(answer.Details()) == 0 {
		return 0
	}
	detail, err := answer.Details()[0].Value()
	if err != nil {
		t.Fatal(err)
	}
	return detail.(*errdetails.RetryInfo).GetRetryDelay().AsDuration()
}
