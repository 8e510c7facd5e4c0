package grpclock_test

import (
	"context"
	"fmt"
	"net"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"

	"github.com/latchkey-go/latchkey/adapters/grpclock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// tell says what the handler behind it holds.
func tell(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if lock, held := core.FromContext(ctx); held {
		fmt.Println("under the lock", lock.Key())
	}
	return handler(ctx, req)
}

// Of all checks of one service one at a time runs, in whichever process it arrives.
func ExampleUnary() {
	embedded, err := miniredis.Run() // yours is a real one
	if err != nil {
		panic(err)
	}
	defer embedded.Close()
	redisClient := redis.NewClient(&redis.Options{Addr: embedded.Addr()})
	defer redisClient.Close()
	locker, err := core.New(redisClient)
	if err != nil {
		panic(err)
	}
	defer locker.Close(context.Background())

	type Check = grpclock.Call[*healthpb.HealthCheckRequest]
	service := func(c Check) (string, error) { return c.Message.GetService(), nil }

	server := grpc.NewServer(grpc.ChainUnaryInterceptor( // after authentication
		grpclock.Unary(locker, healthpb.Health_Check_FullMethodName, keyfunc.Named("service", service)),
		tell,
	))
	healthpb.RegisterHealthServer(server, health.NewServer())
	listener := bufconn.Listen(1 << 16) // yours is net.Listen
	go server.Serve(listener)
	defer server.Stop()

	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	for _, name := range []string{"payments", ""} {
		_, err = client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: name})
		fmt.Println(err)
	}
	// Output:
	// under the lock service=payments
	// rpc error: code = NotFound desc = unknown service
	// rpc error: code = InvalidArgument desc = a required part of the request is missing or malformed
}
