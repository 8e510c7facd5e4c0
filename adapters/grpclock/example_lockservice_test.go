package grpclock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/examples/lockservice"
)

// locks serves lockservice.Locks. Yours is generated from a .proto, with messages of its own.
var locks = grpc.ServiceDesc{
	ServiceName: "shop.Locks",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		{MethodName: "Take", Handler: ofMethod(func(ctx context.Context, l lockservice.Locks, key, _ string) (string, error) {
			return l.Take(ctx, key)
		})},
		{MethodName: "Extend", Handler: ofMethod(func(ctx context.Context, l lockservice.Locks, key, ticket string) (string, error) {
			return ticket, l.Extend(ctx, key, ticket)
		})},
		{MethodName: "Free", Handler: ofMethod(func(ctx context.Context, l lockservice.Locks, key, ticket string) (string, error) {
			return "", l.Free(ctx, key, ticket)
		})},
	},
}

// ofMethod is a handler as generated code has it.
func ofMethod(
	method func(ctx context.Context, l lockservice.Locks, key, ticket string) (string, error),
) func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
	return func(l any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		in := new(structpb.Struct)
		if err := decode(in); err != nil {
			return nil, err
		}
		ticket, err := method(ctx, l.(lockservice.Locks), in.Fields["key"].GetStringValue(), in.Fields["ticket"].GetStringValue())
		switch {
		case errors.Is(err, core.ErrNotAcquired):
			return nil, status.Error(codes.Aborted, "somebody has the lock")
		case errors.Is(err, core.ErrTicket), errors.Is(err, core.ErrLost):
			return nil, status.Error(codes.FailedPrecondition, "the lock is lost, or free")
		case err != nil: // it may have been taken: then it ends after TTL
			return nil, status.Error(codes.Unavailable, "try again")
		}
		return structpb.NewStruct(map[string]any{"ticket": ticket})
	}
}

// A lock is taken over one connection, and freed over another by whoever knows the key and the ticket.
func Example_lockService() {
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

	server := grpc.NewServer() // with authentication: a client names any key
	server.RegisterService(&locks, lockservice.Locks{Locker: locker, TTL: time.Minute})
	listener := bufconn.Listen(1 << 16) // yours is net.Listen
	go server.Serve(listener)
	defer server.Stop()

	call := func(method, ticket string) string {
		conn, err := grpc.NewClient("passthrough:///bufconn",
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		in, _ := structpb.NewStruct(map[string]any{"key": "run-7", "ticket": ticket})
		out := new(structpb.Struct)
		fmt.Println(method, status.Code(conn.Invoke(context.Background(), "/shop.Locks/"+method, in, out)))
		return out.Fields["ticket"].GetStringValue()
	}
	ticket := call("Take", "")
	call("Take", "")
	call("Extend", ticket)
	call("Free", ticket)
	call("Free", ticket)
	// Output:
	// Take OK
	// Take Aborted
	// Extend OK
	// Free OK
	// Free FailedPrecondition
}
