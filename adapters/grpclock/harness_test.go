package grpclock_test

import (
	"context"
	"net"
	"strings"
	"testing"

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
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
