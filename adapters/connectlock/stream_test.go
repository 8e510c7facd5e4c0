package connectlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/overhttp"
	"github.com/latchkey-go/latchkey/locktest"
)

// sent opens a stream with one message for each order, and closes it.
func sent(client clients, orders ...string) error {
	stream := client.load.CallClientStream(background)
	for _, id := range orders {
		if stream.Send(wrapperspb.String(id)) != nil {
			break // refused already
		}
	}
	_, err := stream.CloseAndReceive()
	return err
}

// The handler sees all messages, under the lock of the first one.
func TestStreamOfTheClient(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, service{load: func(ctx context.Context, stream *connect.ClientStream[text]) (*connect.Response[number], error) {
		if lock, held := core.FromContext(ctx); !held || lock.Key() != "orderID=42" {
			t.Errorf("the handler holds %v", lock)
		}
		total := ""
		for stream.Receive() {
			total += stream.Msg().GetValue() + " "
		}
		if total != "42 1 2 " {
			t.Errorf("received %q", total)
		}
		return connect.NewResponse(wrapperspb.Int64(0)), stream.Err()
	}}, guarded(locker))
	wantCode(t, sent(client, "42", "1", "2"), 0)
	overhttp.WantFree(t, locker)
}

func TestStreamRefusals(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, service{}, guarded(locker, core.NoWait()))
	wantCode(t, sent(client), connect.CodeInvalidArgument)
	wantCode(t, sent(client, "forty-two"), connect.CodeInvalidArgument)
	locktest.Hold(t, locker, "orderID=42")
	wantCode(t, sent(client, "42"), connect.CodeAborted)
	locktest.Outage(t, locker)
	wantCode(t, sent(client, "42"), connect.CodeUnavailable)
	client = serve(t, service{}, guarded(locker), connect.WithReadMaxBytes(1)) // a message cannot be received
	wantCode(t, sent(client, "42"), connect.CodeResourceExhausted)
}

func TestStreamOfTheServer(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	client := serve(t, service{watch: func(ctx context.Context, r *connect.Request[text], stream *connect.ServerStream[number]) error {
		if _, held := core.FromContext(ctx); !held || r.Msg.GetValue() != "42" {
			t.Errorf("request %v, held %v", r.Msg, held)
		}
		if err := stream.Send(wrapperspb.Int64(1)); err != nil {
			return err
		}
		locktest.Lose(t, locker, "orderID=42")
		err := stream.Send(wrapperspb.Int64(2))
		if !errors.Is(err, core.ErrLost) {
			t.Errorf("Send after the loss: %v", err)
		}
		return err
	}}, guarded(locker))
	stream, err := client.watch.CallServerStream(background, order("42"))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for stream.Receive() {
		if stream.Msg().GetValue() != 1 {
			t.Error("a message came after the loss")
		}
	}
	wantCode(t, stream.Err(), connect.CodeUnavailable)
}

// A handler that waits for a message does not see it when the lock was lost meanwhile.
func TestStreamDropsWhatCameAfterTheLoss(t *testing.T) {
	locker, _ := overhttp.NewLocker(t)
	waiting := make(chan struct{})
	client := serve(t, service{talk: func(ctx context.Context, stream *connect.BidiStream[text, number]) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		close(waiting)
		<-ctx.Done()
		_, err := stream.Receive()
		if !errors.Is(err, core.ErrLost) {
			t.Errorf("Receive after the loss: %v", err)
		}
		return err
	}}, guarded(locker))
	stream := client.talk.CallBidiStream(background)
	send := func() {
		if err := stream.Send(wrapperspb.String("42")); err != nil {
			t.Fatal(err)
		}
	}
	send()
	overhttp.Receive(t, waiting, "the handler")
	send()
	locktest.Lose(t, locker, "orderID=42")
	_, err := stream.Receive()
	wantCode(t, err, connect.CodeUnavailable)
	_, _ = stream.CloseRequest(), stream.CloseResponse()
}

// A client that goes ends its wait, and one that goes while its handler runs ends the
// handler's context.
func TestStreamCancelled(t *testing.T) {
	locker, heard := overhttp.NewLocker(t)
	client := serve(t, service{talk: func(ctx context.Context, stream *connect.BidiStream[text, number]) error {
		_, _ = stream.Receive()
		_, err := stream.Receive()
		overhttp.Receive(t, ctx.Done(), "the end of the context")
		return err
	}}, guarded(locker, core.Wait(overhttp.Patience), core.KeepFor(time.Hour)))
	open := func() (cancel func()) {
		ctx, cancel := context.WithCancel(background)
		stream := client.talk.CallBidiStream(ctx)
		if err := stream.Send(wrapperspb.String("42")); err != nil {
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
	client := serve(t, service{talk: func(ctx context.Context, stream *connect.BidiStream[text, number]) error {
		_, _ = stream.Receive()
		_, err := stream.Receive()
		ended <- err
		return err
	}}, guarded(locker, core.MaxHold(50*time.Millisecond), core.Lease(time.Hour)))
	stream := client.talk.CallBidiStream(background)
	if err := stream.Send(wrapperspb.String("42")); err != nil {
		t.Fatal(err)
	}
	if err := overhttp.Receive(t, ended, "the end of the lock"); !errors.Is(err, core.ErrMaxHold) {
		t.Errorf("it receives %v", err)
	}
	_, err := stream.Receive()
	wantCode(t, err, connect.CodeUnavailable)
	_, _ = stream.CloseRequest(), stream.CloseResponse()
	overhttp.WantFree(t, locker)
}
