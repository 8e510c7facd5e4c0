package grpclock_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/latchkey-go/latchkey/adapters/grpclock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
	"github.com/latchkey-go/latchkey/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute // only a test that hangs meets it

// service has a method for each kind of handler.
type service struct {
	pb.UnimplementedTestServiceServer
	unary  func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)
	input  func(grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error
	output func(*pb.StreamingOutputCallRequest, grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error
	duplex func(grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error
}

func (s *service) UnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	return s.unary(ctx, r)
}

func (s *service) StreamingInputCall(stream grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	return s.input(stream)
}

func (s *service) StreamingOutputCall(r *pb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	return s.output(r, stream)
}

func (s *service) FullDuplexCall(stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	return s.duplex(stream)
}

// guards are interceptors for the four methods. The key is "orderID=42".
func guards(locker *core.Locker, opts ...core.Option) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(
			grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, orderID[*pb.SimpleRequest](), opts...),
		),
		grpc.ChainStreamInterceptor(
			grpclock.Stream(locker, pb.TestService_StreamingInputCall_FullMethodName, orderID[*pb.StreamingInputCallRequest](), opts...),
			grpclock.Stream(locker, pb.TestService_StreamingOutputCall_FullMethodName, orderID[*pb.StreamingOutputCallRequest](), opts...),
			grpclock.Stream(locker, pb.TestService_FullDuplexCall_FullMethodName, orderID[*pb.StreamingOutputCallRequest](), opts...),
		),
	}
}

type withPayload interface {
	*pb.SimpleRequest | *pb.StreamingInputCallRequest | *pb.StreamingOutputCallRequest
	proto.Message
	GetPayload() *pb.Payload
}

func orderID[M withPayload]() keyfunc.Func[grpclock.Call[M]] {
	return keyfunc.Named("orderID", keyfunc.Int(func(c grpclock.Call[M]) (string, error) {
		return string(c.Message.GetPayload().GetBody()), nil
	}))
}

func payload(order string) *pb.Payload { return &pb.Payload{Body: []byte(order)} }

func call(order string) *pb.SimpleRequest { return &pb.SimpleRequest{Payload: payload(order)} }

// serve returns a client of the service, which runs until the test ends.
func serve(t *testing.T, s *service, opts ...grpc.ServerOption) pb.TestServiceClient {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(opts...)
	pb.RegisterTestServiceServer(server, s)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	client, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return pb.NewTestServiceClient(client)
}

// events are what an Observer hears.
type events chan core.Event

func (e events) Observe(ctx context.Context, event core.Event) context.Context {
	e <- event
	return ctx
}

// next returns the next event of that kind.
func (e events) next(t *testing.T, kind core.EventKind) core.Event {
	t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case event := <-e:
			if event.Kind == kind {
				return event
			}
		case <-timeout:
			t.Fatalf("there is no event of kind %d", kind)
		}
	}
}

// receive ends the test when nothing comes.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatalf("still waiting: %s", what)
		panic("unreachable")
	}
}

func newLocker(t *testing.T) (*core.Locker, events) {
	heard := make(events, 1000)
	return locktest.New(t, core.Observe(heard), core.Logger(slog.New(slog.DiscardHandler))), heard
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	s := status.Convert(err)
	if s.Code() != want {
		t.Errorf("%v, want %v", err, want)
	}
	for _, secret := range []string{"orderID", "42", "core:", "LOADING", "keyfunc"} {
		if strings.Contains(s.String(), secret) {
			t.Errorf("the client is told %q: %v", secret, s)
		}
	}
}

func wantFree(t *testing.T, locker *core.Locker) {
	t.Helper()
	if err := locker.Do(context.Background(), "orderID=42", func(context.Context) error { return nil }, core.Wait(patience)); err != nil {
		t.Errorf("the lock is not free: %v", err)
	}
}
