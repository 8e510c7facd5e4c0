package grpclock_test

import (
	"context"
	"errors"
	"io"
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

type inputs = grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]
type outputs = grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]
type talk = grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]

// sent opens a stream with one message for each order, and closes it.
func sent(t *testing.T, client pb.TestServiceClient, orders ...string) error {
	t.Helper()
	stream, err := client.StreamingInputCall(background)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range orders {
		if err := stream.Send(&pb.StreamingInputCallRequest{Payload: payload(order)}); err != nil && !errors.Is(err, io.EOF) { // refused already
			t.Fatal(err)
		}
	}
	_, err = stream.CloseAndRecv()
	return err
}

// bare is a stream whose client has sent one message, which can be received unless there is an error.
type bare struct {
	grpc.ServerStream
	err error
}

func (bare) Context() context.Context { return background }

func (b bare) RecvMsg(m any) error {
	m.(*pb.StreamingInputCallRequest).Payload = payload("42")
	return b.err
}

// A client may leave out the slash before the method, which is the same one then.
func TestMethodWithoutASlash(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	unary := grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, orderID[*pb.SimpleRequest]())
	stream := grpclock.Stream(locker, pb.TestService_StreamingInputCall_FullMethodName, orderID[*pb.StreamingInputCallRequest]())
	ran := 0
	wantHeld := func(ctx context.Context) {
		ran++
		if _, held := core.FromContext(ctx); !held {
			t.Error("the handler runs without the lock")
		}
	}
	for _, slash := range []string{"/", ""} {
		_, err := unary(background, &pb.SimpleRequest{Payload: payload("42")}, &grpc.UnaryServerInfo{FullMethod: slash + pb.TestService_UnaryCall_FullMethodName[1:]},
			func(ctx context.Context, _ any) (any, error) { wantHeld(ctx); return nil, nil })
		wantCode(t, err, codes.OK)
		err = stream(nil, bare{}, &grpc.StreamServerInfo{FullMethod: slash + pb.TestService_StreamingInputCall_FullMethodName[1:]},
			func(_ any, s grpc.ServerStream) error { wantHeld(s.Context()); return nil })
		wantCode(t, err, codes.OK)
	}
	if ran != 4 {
		t.Errorf("%d handlers have run", ran)
	}
}

// What an interceptor outside, or the handler of a stream, has of another type is a mistake in the set-up.
func TestOtherTypes(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	_, err := grpclock.Unary(locker, pb.TestService_UnaryCall_FullMethodName, orderID[*pb.SimpleRequest]())(background, "42",
		&grpc.UnaryServerInfo{FullMethod: pb.TestService_UnaryCall_FullMethodName},
		func(context.Context, any) (any, error) { panic("the handler ran") })
	wantCode(t, err, codes.Internal)
	stream := grpclock.Stream(locker, pb.TestService_StreamingInputCall_FullMethodName, orderID[*pb.StreamingInputCallRequest]())
	info := &grpc.StreamServerInfo{FullMethod: pb.TestService_StreamingInputCall_FullMethodName}
	err = stream(nil, bare{}, info, func(_ any, s grpc.ServerStream) error { return s.RecvMsg(new(string)) })
	wantCode(t, err, codes.Internal)
	err = stream(nil, bare{err: status.Error(codes.DataLoss, "broken")}, info, func(any, grpc.ServerStream) error { panic("the handler ran") })
	wantCode(t, err, codes.DataLoss) // a message that cannot be received is answered as without a guard
}

// The handler sees all messages, under the lock of the first one.
func TestStreamOfInput(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, &service{input: func(stream inputs) error {
		k, held := core.FromContext(stream.Context())
		if !held || k.Key() != "orderID=42" {
			t.Errorf("the handler holds %v", k)
		}
		total := ""
		for {
			m, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			total += string(m.GetPayload().GetBody()) + " "
		}
		if total != "42 1 2 " {
			t.Errorf("received %q", total)
		}
		return stream.SendAndClose(&pb.StreamingInputCallResponse{})
	}}, guards(locker)...)
	wantCode(t, sent(t, client, "42", "1", "2"), codes.OK)
	overhttp.WantFree(t, locker)
}

func TestStreamRefusals(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, &service{}, guards(locker, core.NoWait())...)
	wantCode(t, sent(t, client), codes.InvalidArgument)
	wantCode(t, sent(t, client, "forty-two"), codes.InvalidArgument)
	locktest.Hold(t, locker, "orderID=42")
	wantCode(t, sent(t, client, "42"), codes.Aborted)
	locktest.Outage(t, locker)
	wantCode(t, sent(t, client, "42"), codes.Unavailable)
}

func TestStreamOfOutput(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, &service{output: func(r *pb.StreamingOutputCallRequest, stream outputs) error {
		if _, held := core.FromContext(stream.Context()); !held || string(r.GetPayload().GetBody()) != "42" {
			t.Errorf("request %v, held %v", r, held)
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{}); err != nil {
			return err
		}
		locktest.Lose(t, locker, "orderID=42")
		err := stream.Send(&pb.StreamingOutputCallResponse{})
		if !errors.Is(err, core.ErrLost) {
			t.Errorf("Send after the loss: %v", err)
		}
		return err
	}}, guards(locker)...)
	stream, err := client.StreamingOutputCall(background, &pb.StreamingOutputCallRequest{Payload: payload("42")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)
}

// A handler that waits for a message does not see it when the lock was lost meanwhile.
func TestStreamDropsWhatCameAfterTheLoss(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	waiting := make(chan struct{})
	client := serve(t, &service{duplex: func(stream talk) error {
		if _, err := stream.Recv(); err != nil {
			return err
		}
		close(waiting)
		<-stream.Context().Done()
		_, err := stream.Recv()
		if !errors.Is(err, core.ErrLost) {
			t.Errorf("Recv after the loss: %v", err)
		}
		return err
	}}, guards(locker)...)
	stream, err := client.FullDuplexCall(background)
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		if err := stream.Send(&pb.StreamingOutputCallRequest{Payload: payload("42")}); err != nil {
			t.Fatal(err)
		}
	}
	send()
	overhttp.Receive(t, waiting, "the handler")
	send()
	locktest.Lose(t, locker, "orderID=42")
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)
}

func TestStreamsExcludeOneAnother(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	client := serve(t, &service{input: func(stream inputs) error {
		entered <- struct{}{}
		<-leave
		return stream.SendAndClose(&pb.StreamingInputCallResponse{})
	}}, guards(locker, core.Wait(overhttp.Patience))...)
	done := make(chan error, 2)
	for range 2 {
		go func() { done <- sent(t, client, "42") }()
		heard.Next(t, core.EventWaiting)
	}
	overhttp.Receive(t, entered, "the first stream")
	select {
	case <-entered:
		t.Error("two streams are inside")
	default:
	}
	close(leave)
	for range 2 {
		wantCode(t, overhttp.Receive(t, done, "the answers"), codes.OK)
	}
}

// A client that goes ends its wait, and one that goes while its handler runs ends the
// handler's context.
func TestStreamCancelled(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	client := serve(t, &service{duplex: func(stream talk) error {
		_, _ = stream.Recv()
		_, err := stream.Recv()
		if !errors.Is(stream.Context().Err(), context.Canceled) {
			t.Errorf("err %v, context %v", err, stream.Context().Err())
		}
		return err
	}}, guards(locker, core.Wait(overhttp.Patience), core.KeepFor(time.Hour))...)
	open := func() (cancel func()) {
		ctx, cancel := context.WithCancel(background)
		stream, err := client.FullDuplexCall(ctx)
		if err == nil {
			err = stream.Send(&pb.StreamingOutputCallRequest{Payload: payload("42")})
		}
		if err != nil {
			t.Fatal(err)
		}
		return cancel
	}
	leave := open()
	heard.Next(t, core.EventAcquired)
	giveUp := open()
	heard.Next(t, core.EventWaiting)
	giveUp()
	if reason := heard.Next(t, core.EventBusy).Reason; reason != "canceled" {
		t.Errorf("the wait ended with %q", reason)
	}
	leave()
	heard.Next(t, core.EventReleased)
	overhttp.WantFree(t, locker)
}

// A client that sends nothing does not keep the lock beyond MaxHold, nor after a loss.
func TestStreamOfASilentClient(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	ended := make(chan error, 1)
	client := serve(t, &service{duplex: func(stream talk) error {
		_, _ = stream.Recv()
		_, err := stream.Recv()
		ended <- err
		return err
	}}, guards(locker, core.MaxHold(50*time.Millisecond), core.Lease(time.Hour))...)
	stream, err := client.FullDuplexCall(background)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&pb.StreamingOutputCallRequest{Payload: payload("42")}); err != nil {
		t.Fatal(err)
	}
	if err := overhttp.Receive(t, ended, "the end of the lock"); !errors.Is(err, core.ErrMaxHold) {
		t.Errorf("it receives %v", err)
	}
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)
	overhttp.WantFree(t, locker)
}
