package core_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/latchkey-go/latchkey/core"
)

// One process of all works off an outbox. When it leaves, another goes on.
func ExampleLocker_Lead() {
	locker, done := open()
	defer done()

	errEmpty := errors.New("the outbox is empty")
	outbox := []string{"order 1 paid", "order 2 shipped"}
	err := locker.Lead(context.Background(), "outbox", func(ctx context.Context) error {
		leader, _ := core.FromContext(ctx) // leader.Token() is the fencing token of this term
		for _, message := range outbox {
			if ctx.Err() != nil {
				return ctx.Err() // leadership is lost, or the process ends
			}
			fmt.Println(message, "sent by the leader of", leader.Key())
		}
		return errEmpty // steps down
	})
	fmt.Println(err)
	// Output:
	// order 1 paid sent by the leader of outbox
	// order 2 shipped sent by the leader of outbox
	// the outbox is empty
}

// At the end of the process its leader returns first.
func ExampleLocker_Lead_shutdown() {
	locker, done := open()
	defer done()

	ctx, stop := context.WithCancel(context.Background()) // or signal.NotifyContext
	stopped := make(chan error)
	leading := make(chan struct{})
	go func() {
		stopped <- locker.Lead(ctx, "compaction", func(ctx context.Context) error {
			close(leading)
			<-ctx.Done()
			fmt.Println("leaves all in order")
			return nil
		})
	}()
	<-leading
	stop()
	fmt.Println(<-stopped) // another process leads from now on
	// Output:
	// leaves all in order
	// context canceled
}
