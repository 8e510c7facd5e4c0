package watermilllock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"
	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/latchkey-go/latchkey/adapters/watermilllock"
	"github.com/latchkey-go/latchkey/core"
)

// open returns a Locker on an embedded Redis; yours is a real one.
func open() (locker *core.Locker, done func()) {
	server, err := miniredis.Run()
	if err != nil {
		panic(err)
	}
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	if locker, err = core.New(client); err != nil {
		panic(err)
	}
	return locker, func() {
		_ = locker.Close(context.Background())
		_ = client.Close()
		server.Close()
	}
}

// Of all messages about an order one is handled at a time.
func ExampleWith() {
	locker, done := open()
	defer done()
	logger := watermill.NopLogger{}
	pubSub := gochannel.NewGoChannel(gochannel.Config{}, logger)
	router, err := message.NewRouter(message.RouterConfig{}, logger)
	if err != nil {
		panic(err)
	}
	router.AddMiddleware(watermilllock.With(locker).ByPayload("orderID"))

	handled := make(chan string)
	router.AddNoPublisherHandler("pay", "orders", pubSub, func(m *message.Message) error {
		lock, _ := core.FromContext(m.Context())
		handled <- "paid under the lock " + lock.Key()
		return nil
	})
	stopped := make(chan error)
	go func() { stopped <- router.Run(context.Background()) }()
	<-router.Running()
	if err := pubSub.Publish("orders", message.NewMessage(watermill.NewUUID(), []byte(`{"orderID":42}`))); err != nil {
		panic(err)
	}
	fmt.Println(<-handled)
	_ = router.Close()
	fmt.Println(<-stopped)
	// Output:
	// paid under the lock orderID=42
	// <nil>
}

// A message whose work was done within the dedup window is acked. Without the first middleware it would
// come again until the window is over, and be handled once more then.
func ExampleErrNotRun() {
	locker, done := open()
	defer done()
	ackWhatIsDone := func(next message.HandlerFunc) message.HandlerFunc {
		return func(m *message.Message) ([]*message.Message, error) {
			produced, err := next(m)
			var busy *core.BusyError
			if errors.Is(err, watermilllock.ErrNotRun) && errors.As(err, &busy) && busy.Done {
				fmt.Println("it was done already")
				return nil, nil
			}
			return produced, err
		}
	}
	lock := watermilllock.With(locker, core.KeepFor(time.Hour), core.NoWait()).ByMetadata("request")

	handler := ackWhatIsDone(lock(func(m *message.Message) ([]*message.Message, error) {
		fmt.Println("handled", string(m.Payload))
		return nil, nil
	}))
	for range 2 { // the same message, delivered twice
		m := message.NewMessage(watermill.NewUUID(), []byte("the order"))
		m.Metadata.Set("request", "7f3a")
		if _, err := handler(m); err != nil {
			panic(err)
		}
	}
	// Output:
	// handled the order
	// it was done already
}
