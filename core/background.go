package core

// BackgroundRelease has wrappers return without waiting for the release of the lock: what they
// answer is there a round trip to Redis earlier. Wrappers are [Locker.Do], [Locker.DoAll], [Wrap],
// [WrapAll] and middleware; given to [New] it is for all of them. [Lock.Unlock], [Lock.Abort] and
// [Locker.Lead] wait nevertheless.
//
// When the wrapper returns, [Lock.Context] is done, and a loss that is known by then is
// returned. The release is sent at once, together with other commands where there are any. When it
// is not answered it is repeated, as that of Lock.Unlock is, and [Locker.Close] waits for it. A
// lock for which another call of this Locker waits is passed on to that in memory, as ever.
//
// What changes:
//   - The next call for the key may find the lock still taken. It waits for the release, as for
//     any other; one that does not wait, such as [Locker.TryLock], may be refused.
//   - A loss that only the release tells comes as [EventLost] and in the log, and the wrapper
//     does not return [ErrLost]. [EventReleased] may come after the wrapper has returned, and the
//     hooks of the Redis client do not see the values of its context.
//   - A process that ends without Locker.Close may leave a lock whose work is done, until the
//     lease ends. Close the Locker after the server's Shutdown.
//
// It has no effect, and the wrapper waits, with [NoWait], or a client's next request might be
// refused because of its last one; with [KeepFor], for the window must be there before a client
// learns that the work is done; and for a lock of which others may have a hold: by [Owner], by
// [Lock.ShareOwner], by a context that holds it, or by the ticket of [Lock.Handover].
func BackgroundRelease() Option {
	return Option{func(s *settings) { s.Background = true }}
}
