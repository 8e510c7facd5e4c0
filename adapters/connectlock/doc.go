// Package connectlock guards procedures of a connect server with a distributed lock: of all calls with the same key, one at a
// time runs, across every process.
//
//	pay := connectlock.By(locker, paymentsconnect.PaymentsPayProcedure, keyfunc.Named("orderID", keyfunc.Int(order)))
//	mux.Handle(paymentsconnect.NewPaymentsHandler(payments{}, connect.WithInterceptors(authenticate, pay)))
//
// Put it after authentication. The handler's context is cancelled when the lock is lost, and locks taken with it re-enter. The
// lock of a stream is taken when the client's first message is there, before the handler runs, and held until the handler
// returns: bound that by [core.MaxHold]. When the lock is lost, the stream neither receives nor sends any more.
//
// A call that must not run gets an error with a fixed text: CodeInvalidArgument when the key is missing or malformed,
// CodeAborted when the lock is busy and CodeResourceExhausted when it has permits and none is free, with a RetryInfo
// and Retry-After; CodeUnavailable, with both, when Redis does not answer or is overloaded, or the Locker is closing; CodeCanceled and
// CodeDeadlineExceeded when the call's context ended in the wait; CodeInternal when no Locker is set; the log says so. A
// handler's error of core is answered in this way, too. Interceptors outside find the reason in the error.
//
// A dedup window opens when the handler returns no error.
package connectlock
