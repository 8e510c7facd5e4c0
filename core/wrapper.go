package core

// ForWrapper returns an Option that a wrapper understands and the lock does not, such as how
// it answers. A wrapper takes those out by [SplitOptions]; given to [New] or to a call it is
// an error.
func ForWrapper(value any) Option {
	return func(s *settings) {
		if !s.ofWrapper {
			s.fail("an option of type %T is for a wrapper that knows it, not for a lock", value)
		}
		s.forWrapper = append(s.forWrapper, value)
	}
}

// SplitOptions parts options that a wrapper was given: those for its locks, and the values of
// those made by [ForWrapper]. It does not check them, see [CheckOptions].
func SplitOptions(opts ...Option) (forLocks []Option, forWrapper []any) {
	for _, o := range opts {
		s := settings{ofWrapper: true}
		if o != nil {
			o(&s)
		}
		if s.forWrapper == nil {
			forLocks = append(forLocks, o)
		}
		forWrapper = append(forWrapper, s.forWrapper...)
	}
	return forLocks, forWrapper
}

// OwnerBegin has the owner of a lock begin with id, for wrappers that tell from [Info].Owner
// which of their calls is in the way. Unlike [Owner] it lets nobody enter: the rest differs
// from one attempt to the next, and the calls exclude one another. id is at most 64 bytes, and
// else as in [Owner]. A call whose context holds the lock already enters it with the owner
// that it has.
func OwnerBegin(id string) Option {
	return func(s *settings) {
		if s.isOwner("OwnerBegin", id, maxOwnerBytes/2) {
			s.ownerBegin = id
		}
	}
}
