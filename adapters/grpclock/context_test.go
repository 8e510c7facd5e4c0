package grpclock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/latchkey-go/latchkey/adapters/grpclock"
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/locktest"
)

// The handler's context ends with the lock, and what the handler says about that does
// not reach the client.
func TestLoss(t *testing.T) {
	for name, c := range map[string]struct {
		report func(context.Context) error
		want   codes.Code
	}{
		"cause":          {context.Cause, codes.Unavailable},
		"context":        {context.Context.Err, codes.Unavailable},
		"own status":     {func(context.Context) error { return status.Error(codes.DataLoss, "half done") }, codes.DataLoss},
		"done meanwhile": {func(context.Context) error { return nil }, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			locker, _ := overhttp.NewLocker(t)
			client := serve(t, &service{unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
				locktest.Lose(t, locker, "orderID=42")
				overhttp.Receive(t, ctx.Done(), "the end of the context")
				return &pb.SimpleResponse{}, c.report(ctx)
			}}, guards(locker)...)
			_, err := client.UnaryCall(background, call("42"))
			wantCode(t, err, c.want)
		})
	}
}

// A handler may take the lock again, and is not told apart from a stranger for others.
func TestLocksInside(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	locktest.Hold(t, locker, "stock:42")
	client := serve(t, &service{unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		err := locker.Do(ctx, "orderID=42", func(context.Context) error { return nil }, core.NoWait())
		if err != nil {
			t.Errorf("re-entry: %v", err)
		}
		return nil, locker.Do(ctx, "stock:42", func(context.Context) error { return nil }, core.NoWait())
	}}, guards(locker)...)
	_, err := client.UnaryCall(background, call("42"))
	wantCode(t, err, codes.Aborted)
}

func TestCancelEndsTheWait(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	client := serve(t, &service{}, guards(locker, core.Wait(overhttp.Patience))...)
	release := locktest.Hold(t, locker, "orderID=42")
	heard.Next(t, core.EventAcquired) // by Hold
	ctx, cancel := context.WithCancel(background)
	done := make(chan error, 1)
	go func() {
		_, err := client.UnaryCall(ctx, call("42"))
		done <- err
	}()
	heard.Next(t, core.EventWaiting)
	cancel()
	wantCode(t, overhttp.Receive(t, done, "the answer"), codes.Canceled)
	if reason := heard.Next(t, core.EventBusy).Reason; reason != "canceled" {
		t.Errorf("the wait ended with %q", reason)
	}
	release()
	overhttp.WantFree(t, locker)
}

// The server answers before the client has noticed by itself.
func TestDeadlineWhileWaiting(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	locktest.Hold(t, locker, "orderID=42")
	ctx, cancel := context.WithDeadline(background, time.Now())
	defer cancel()
	guard := grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, orderID[*pb.SimpleRequest]())
	_, err := guard(ctx, call("42"), &grpc.UnaryServerInfo{FullMethod: pb.TestService_UnaryCall_FullMethodName},
		func(context.Context, any) (any, error) { panic("the handler ran") })
	wantCode(t, err, codes.DeadlineExceeded)
	if !errors.Is(err, core.ErrNotAcquired) {
		t.Error("interceptors outside do not find the reason")
	}
}
