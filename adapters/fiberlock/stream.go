package fiberlock

import (
	"context"

	"github.com/gofiber/fiber/v3"
)

// under runs a function under the locks of a request.
type under func(ctx context.Context, fn func(context.Context) error) (ran bool, err error)

// holdForStream enters the locks of ctx once more if the answer is a stream, which fasthttp reads after the handler has returned: they
// are held until it has ended. It fails when they are lost. After fiber's timeout nobody reads the stream, nor ends the request.
func (locks under) holdForStream(ctx context.Context, c fiber.Ctx) error {
	if !c.Response().IsBodyStream() || c.IsAbandoned() {
		return nil
	}
	entered, ended := make(chan error, 1), make(streamEnd)
	go func() {
		_, err := locks(context.WithoutCancel(ctx), func(context.Context) error { // the request may be over
			entered <- nil
			<-ended
			return nil
		})
		if err != nil {
			entered <- err // unless it has entered: then core has logged it
		}
	}()
	err := <-entered
	if err == nil {
		c.RequestCtx().SetUserValue(ended, ended)
	}
	return err
}

// streamEnd is closed by fasthttp as a value of the request: when it has written the answer, or has given up.
type streamEnd chan struct{}

// Close ends what waits for it.
func (e streamEnd) Close() error {
	close(e)
	return nil
}
