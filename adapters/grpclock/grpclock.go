package grpclock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/keyfunc"
)

// Call is what a key is derived from. M is the type of the method's request.
type Call[M proto.Message] struct {
	Context context.Context // with the metadata, the peer, and what authentication has stored
	Message M               // of a stream that the client sends: the first one
}

// Unary guards one method, named as the generated code does:
// pb.Payments_Pay_FullMethodName. All others pass. Unless opts say otherwise a call
// waits up to 3 s, and up to 256 calls wait for one key in a process. A nil Locker is
// [core.Default], looked up for each call. Observers get the method as the lock's name,
// unless there is a [core.Name]. The interceptor is safe for concurrent use.
//
// It panics when there is no such method that takes an M and streams nothing, when key
// is nil or an option is bad.
func Unary[M proto.Message](
	locker *core.Locker, method string, key keyfunc.Func[Call[M]], opts ...core.Option,
) grpc.UnaryServerInterceptor {
	g := newGuard(locker, method, false, key, opts)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		if !isMethod(info.FullMethod, method) {
			return handler(ctx, req)
		}
		message, ok := req.(M)
		if !ok {
			return nil, g.refuse(ctx, fmt.Errorf("grpclock: the request is a %T", req))
		}
		err = g.serve(ctx, message, func(ctx context.Context) (err error) {
			resp, err = handler(ctx, req)
			return err
		})
		return resp, err
	}
}

// Stream is Unary for a method that streams. The lock is taken when the client's first
// message is there, before the handler runs, and held until the handler returns: bound
// that by [core.MaxHold]. When the lock is lost, the stream neither receives nor sends
// any more.
func Stream[M proto.Message](
	locker *core.Locker, method string, key keyfunc.Func[Call[M]], opts ...core.Option,
) grpc.StreamServerInterceptor {
	g := newGuard(locker, method, true, key, opts)
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		if !isMethod(info.FullMethod, method) {
			return handler(srv, ss)
		}
		var m M
		first := m.ProtoReflect().New().Interface().(M)
		switch err := ss.RecvMsg(first); {
		case errors.Is(err, io.EOF):
			return g.refuse(ss.Context(), &keyError{keyfunc.ErrMissing})
		case err != nil:
			return err
		}
		return g.serve(ss.Context(), first, func(ctx context.Context) error {
			return handler(srv, &stream{ServerStream: ss, ctx: ctx, first: first})
		})
	}
}

// isMethod reports whether a call is for a method. Some versions of grpc-go serve a call that leaves out the slash before the
// method, and say its name as it came.
func isMethod(called, method string) bool {
	return strings.TrimPrefix(called, "/") == strings.TrimPrefix(method, "/")
}

// guard is what an interceptor consists of.
type guard[M proto.Message] struct {
	given   *core.Locker
	method  string
	key     keyfunc.Func[Call[M]]
	options []core.Option
	told    sync.Once // a line in the log: of a mistake in the set-up
}

// locker is nil where none is set.
func (g *guard[M]) locker() *core.Locker { return cmp.Or(g.given, core.Default()) }

func newGuard[M proto.Message](locker *core.Locker, method string, streams bool, key keyfunc.Func[Call[M]], opts []core.Option) *guard[M] {
	if key == nil {
		panic("grpclock: the key function is nil")
	}
	if err := adapter.Validate(opts...); err != nil {
		panic("grpclock: " + err.Error())
	}
	mustMethod[M](method, streams)
	own := []core.Option{adapter.Fallback(core.Wait(3*time.Second), adapter.NoWindow(), core.MaxWaiters(256)), core.Name(strings.TrimPrefix(method, "/"))}
	return &guard[M]{given: locker, method: method, key: key, options: append(own, opts...)}
}

// mustMethod panics unless the generated code has such a method. A name with a typo, or
// a method that has become a stream, would run without its lock.
func mustMethod[M proto.Message](method string, streams bool) {
	var m M
	if any(m) == nil {
		panic("grpclock: the type of the message is no generated one")
	}
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(method, "/"), "/", "."))
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(name)
	d, ok := found.(protoreflect.MethodDescriptor)
	switch want := m.ProtoReflect().Descriptor().FullName(); {
	case !ok || method != fmt.Sprintf("/%s/%s", d.Parent().FullName(), d.Name()):
		panic(fmt.Sprintf("grpclock: there is no method %q: take it from the generated code", method))
	case d.Input().FullName() != want:
		panic(fmt.Sprintf("grpclock: %s takes a %s, not a %s", method, d.Input().FullName(), want))
	case (d.IsStreamingClient() || d.IsStreamingServer()) != streams:
		panic(fmt.Sprintf("grpclock: %s: Unary is for methods that stream nothing, Stream for the others", method))
	}
}

// serve runs handler under the lock of the call's key.
func (g *guard[M]) serve(ctx context.Context, message M, handler func(context.Context) error) error {
	key, err := g.key(Call[M]{ctx, message})
	switch {
	case errors.Is(err, keyfunc.ErrSkip):
		return handler(ctx)
	case err != nil:
		return g.refuse(ctx, &keyError{err})
	}
	locker := g.locker()
	if locker == nil {
		return g.refuse(ctx, errors.New("grpclock: no Locker: give one to the interceptor, or call core.SetDefault"))
	}
	var failure error
	ran, err := adapter.Do(ctx, locker, key, func(ctx context.Context) error {
		failure = handler(ctx)
		return failure
	}, g.options...)
	if !ran {
		return g.refuse(ctx, err)
	}
	return conceal(failure, err) // nil after a success: what went wrong with the lock meanwhile, core has logged
}

// stream is what the handler of a stream works with.
type stream struct {
	grpc.ServerStream
	ctx   context.Context
	first proto.Message // nil once it is received
}

func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg ends with the lock: a client that sends nothing does not keep the handler, which has not left the lock before it returns.
func (s *stream) RecvMsg(m any) error {
	into, ok := m.(proto.Message)
	switch err := s.ended(); {
	case !ok:
		return answerOf(fmt.Errorf("grpclock: the handler receives a %T", m))
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
		o.err = s.ServerStream.RecvMsg(received)
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

func (s *stream) SendMsg(m any) error {
	if err := s.ended(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

func (s *stream) ended() error {
	if cause := context.Cause(s.ctx); isCore(cause) {
		return answerOf(cause)
	}
	return nil // as long as the lock is held; when the client has gone, the stream says so
}
