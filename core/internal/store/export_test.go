package store

// ClockOf is the fencing clock of a lock.
func ClockOf(prefix, lock string) string { return NewName(prefix, lock[len(prefix):]).clock() }
