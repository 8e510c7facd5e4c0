package schedule

import "sync"

// Count counts what is under way, so that one can wait for its end. The zero value is
// ready; the methods are safe for concurrent use and do not block.
type Count struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n is 0; nil when nobody waits
}

// Begin counts one more, until End.
func (c *Count) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

// End counts one less.
func (c *Count) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
	c.check()
}

// None returns a channel that is closed as soon as nothing is under way. What begins before
// that is waited for, too.
func (c *Count) None() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.none == nil {
		c.none = make(chan struct{})
	}
	none := c.none
	c.check()
	return none
}

// check tells who waits when nothing is under way. c.mu is held.
func (c *Count) check() {
	if c.n == 0 && c.none != nil {
		close(c.none)
		c.none = nil
	}
}
