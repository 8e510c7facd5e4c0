package schedule

// bucket has the events of one time. There may be very many, for which a heap of
// events would be slow, and locked for long.
type bucket struct {
	at     Time
	index  int // in the heap
	events []Event
}

func (b *bucket) add(e Event) {
	*e.entry() = Entry{b, len(b.events)}
	b.events = append(b.events, e)
}

func (b *bucket) remove(e *Entry) {
	last := len(b.events) - 1
	moved := b.events[last]
	b.events[e.place], b.events[last] = moved, nil
	b.events = b.events[:last]
	moved.entry().place = e.place
	e.bucket = nil
}

// empty takes all events out and appends them to those given.
func (b *bucket) empty(to []Event) []Event {
	for _, e := range b.events {
		e.entry().bucket = nil
	}
	to = append(to, b.events...)
	b.events = nil
	return to
}

// buckets is a heap by time.
type buckets []*bucket

func (h buckets) Len() int           { return len(h) }
func (h buckets) Less(i, j int) bool { return h[i].at < h[j].at }
func (h buckets) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *buckets) Push(x any) {
	b := x.(*bucket)
	b.index = len(*h)
	*h = append(*h, b)
}

func (h *buckets) Pop() any {
	last := len(*h) - 1
	b := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return b
}
