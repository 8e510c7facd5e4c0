package hertzlock

import (
	"context"
	"io"
	"sync"

	"github.com/cloudwego/hertz/pkg/app"
)

// under runs a function under the locks of a request.
type under func(ctx context.Context, fn func(context.Context) error) (ran bool, err error)

// holdForStream enters the locks of ctx once more if the answer is a stream, which hertz reads after the handler has returned: they
// are held until it has ended. It fails when they are lost.
func (locks under) holdForStream(ctx context.Context, c *app.RequestContext) error {
	if !c.Response.IsBodyStream() {
		return nil
	}
	entered, ended := make(chan error, 1), make(chan struct{})
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
		held := &stream{Reader: c.Response.BodyStream(), end: sync.OnceFunc(func() { close(ended) })}
		c.Response.SetBodyStreamNoReset(held, c.Response.Header.ContentLength())
	}
	return err
}

// stream is the body of an answer. Its end is that of what waits for it.
type stream struct {
	io.Reader
	end func()
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil {
		s.end()
	}
	return n, err
}

// Close is called by hertz when it has written the answer, or has given up.
func (s *stream) Close() error {
	defer s.end()
	if closer, ok := s.Reader.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
