package core

// InnerCallsWaiting counts the locks whose holders wait for others, in the whole process.
func InnerCallsWaiting() int {
	waitingInside.mu.Lock()
	defer waitingInside.mu.Unlock()
	return len(waitingInside.byHeld)
}
