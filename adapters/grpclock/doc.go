// Package grpclock guards methods of a gRPC server with a distributed lock: of all
// calls with the same key, one at a time runs, across every process.
//
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(authenticate,
//		grpclock.Unary(locker, pb.Payments_Pay_FullMethodName, keyfunc.Named("orderID", keyfunc.Int(order)))))
//
// Put it after authentication. The handler's context is cancelled when the lock is lost, and locks taken with it re-enter.
//
// A call that must not run gets a status with a fixed text: InvalidArgument when the key is missing or malformed, Aborted when the
// lock is busy and ResourceExhausted when it has permits and none is free, with a RetryInfo; Unavailable, with one, when Redis
// does not answer or is overloaded, or the Locker is closing; Canceled and DeadlineExceeded when the call's context ended in the wait; Internal
// when no Locker is set; the log says so. A handler's error of core is answered in this way, too. Interceptors outside find the
// reason in the error.
//
// A dedup window opens when the handler returns no error.
package grpclock
