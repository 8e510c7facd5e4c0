package connectlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Call is what a key is derived from. M is the type of the procedure's request.
type Call[M proto.Message] struct {
	Context context.Context // with what authentication has stored
	Message M               // of a stream that the client sends: the first one
	Header  http.Header     // of the request
	Peer    connect.Peer
}

// By guards one procedure, unary or a stream, named as the generated code does: paymentsconnect.PaymentsPayProcedure. All
// others pass, and so do the calls of a client. Unless opts say otherwise a call waits up to 3 s, and up to 256 calls wait for one
// key in a process. A nil Locker is [core.Default], looked up for each call. Observers get the procedure as
// the lock's name, unless there is a [core.Name]. The interceptor is safe for concurrent use.
//
// It panics when the generated code has no such procedure that takes an M, when key is nil or an option is bad.
func By[M proto.Message](locker *core.Locker, procedure string, key keyfunc.Func[Call[M]], opts ...core.Option) connect.Interceptor {
	if key == nil {
		panic("connectlock: the key function is nil")
	}
	if err := adapter.Validate(opts...); err != nil {
		panic("connectlock: " + err.Error())
	}
	mustProcedure[M](procedure)
	own := []core.Option{adapter.Fallback(core.Wait(3*time.Second), adapter.NoWindow(), core.MaxWaiters(256)), core.Name(strings.TrimPrefix(procedure, "/"))}
	return &guard[M]{given: locker, procedure: procedure, key: key, options: append(own, opts...)}
}

// mustProcedure panics unless the generated code has such a procedure: one with a typo would run without its lock.
func mustProcedure[M proto.Message](procedure string) {
	var m M
	if any(m) == nil {
		panic("connectlock: the type of the message is no generated one")
	}
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(procedure, "/"), "/", "."))
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(name)
	d, ok := found.(protoreflect.MethodDescriptor)
	switch want := m.ProtoReflect().Descriptor().FullName(); {
	case !ok || procedure != fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name()):
		panic(fmt.Sprintf("connectlock: there is no procedure %q: take it from the generated code", procedure))
	case d.Input().FullName() != want:
		panic(fmt.Sprintf("connectlock: %s takes a %s, not a %s", procedure, d.Input().FullName(), want))
	}
}

// guard is what an interceptor consists of.
type guard[M proto.Message] struct {
	given     *core.Locker
	procedure string
	key       keyfunc.Func[Call[M]]
	options   []core.Option
	told      sync.Once // a line in the log: of a mistake in the set-up
}

// locker is nil where none is set.
func (g *guard[M]) locker() *core.Locker { return cmp.Or(g.given, core.Default()) }

func (g *guard[M]) isFor(spec connect.Spec) bool {
	return !spec.IsClient && spec.Procedure == g.procedure
}

func (g *guard[M]) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (response connect.AnyResponse, err error) {
		if !g.isFor(request.Spec()) {
			return next(ctx, request)
		}
		message, ok := request.Any().(M)
		if !ok {
			return nil, g.refuse(ctx, fmt.Errorf("connectlock: the request is a %T", request.Any()))
		}
		err = g.serve(Call[M]{ctx, message, request.Header(), request.Peer()}, func(ctx context.Context) (err error) {
			response, err = next(ctx, request)
			return err
		})
		return response, err
	}
}

func (g *guard[M]) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (g *guard[M]) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if !g.isFor(conn.Spec()) {
			return next(ctx, conn)
		}
		var m M
		first := m.ProtoReflect().New().Interface().(M)
		switch err := conn.Receive(first); {
		case errors.Is(err, io.EOF):
			return g.refuse(ctx, &keyError{keyfunc.ErrMissing})
		case err != nil:
			return err
		}
		return g.serve(Call[M]{ctx, first, conn.RequestHeader(), conn.Peer()}, func(ctx context.Context) error {
			return next(ctx, &stream{StreamingHandlerConn: conn, ctx: ctx, first: first})
		})
	}
}

// serve runs handler under the lock of the call's key.
func (g *guard[M]) serve(call Call[M], handler func(context.Context) error) error {
	ctx := call.Context
	key, err := g.key(call)
	switch {
	case errors.Is(err, keyfunc.ErrSkip):
		return handler(ctx)
	case err != nil:
		return g.refuse(ctx, &keyError{err})
	}
	locker := g.locker()
	if locker == nil {
		return g.refuse(ctx, errors.New("connectlock: no Locker: give one to By, or call core.SetDefault"))
	}
	var failure error
	ran, err := adapter.Do(ctx, locker, key, func(ctx context.Context) error {
		failure = handler(ctx)
		return failure
	}, g.options...)
	switch {
	case !ran:
		return g.refuse(ctx, err)
	case failure == nil:
		return nil // what went wrong with the lock meanwhile, core has logged
	default:
		return conceal(failure, err)
	}
}

// stream is what the handler of a stream works with.
type stream struct {
	connect.StreamingHandlerConn
	ctx   context.Context
	first proto.Message // nil once it is received
}

// Receive ends with the lock: a client that sends nothing does not keep the handler, which has not left the lock before it returns.
func (s *stream) Receive(m any) error {
	into, ok := m.(proto.Message)
	switch err := s.ended(); {
	case !ok:
		return answerOf(fmt.Errorf("connectlock: the handler receives a %T", m))
	case s.first != nil:
		give(into, s.first)
		s.first = nil
		return err
	case err != nil:
		return err
	}
	received, done := into.ProtoReflect().New().Interface(), make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			o.panicked = recover()
			done <- o
		}()
		o.err = s.StreamingHandlerConn.Receive(received)
	}()
	select {
	case <-s.ctx.Done():
		if err := s.ended(); err != nil {
			return err // and the message, which may still come, is nobody's
		}
		// The client has gone, which ends the other wait, too.
		return s.end(into, received, <-done)
	case o := <-done:
		return s.end(into, received, o)
	}
}

// outcome is what has become of a message that was received.
type outcome struct {
	err      error
	panicked any
}

// end drops what was received when the lock ended meanwhile: the handler would go on beside the next holder.
func (s *stream) end(into, received proto.Message, o outcome) error {
	if o.panicked != nil {
		panic(o.panicked)
	}
	if err := cmp.Or(s.ended(), o.err); err != nil {
		return err
	}
	give(into, received)
	return nil
}

func give(into, received proto.Message) {
	proto.Reset(into)
	proto.Merge(into, received)
}

func (s *stream) Send(m any) error {
	if err := s.ended(); err != nil {
		return err
	}
	return s.StreamingHandlerConn.Send(m)
}

func (s *stream) ended() error {
	if cause := context.Cause(s.ctx); isCore(cause) {
		return answerOf(cause)
	}
	return nil // as long as the lock is held; when the client has gone, the stream says so
}
