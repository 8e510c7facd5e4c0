package schedule

// children is how many a place of a heap has. With more of them there are fewer levels: in a heap that does not
// fit the caches, each is a wait for the memory.
const children = 8

// heap has events by their times, the next one first. The times are beside them: to compare two does not touch
// the events.
type heap []item

type item struct {
	at    Time
	event Event
}

// put has a place filled by an item.
func (h heap) put(i int, it item) {
	h[i] = it
	it.event.timer().place = int32(i + 1)
}

func (h *heap) set(it item) {
	place := int(it.event.timer().place)
	if place == 0 {
		*h = append(*h, item{})
		place = len(*h)
	}
	h.settle(place-1, it)
}

func (h *heap) remove(i int) Event {
	last := len(*h) - 1
	e, moved := (*h)[i].event, (*h)[last]
	(*h)[last] = item{}
	*h = (*h)[:last]
	if i < last {
		h.settle(i, moved)
	}
	e.timer().place = 0
	return e
}

// settle puts an item at a place that is free for it, or where it belongs above or below that.
func (h heap) settle(i int, it item) {
	for i > 0 && it.at < h[(i-1)/children].at {
		h.put(i, h[(i-1)/children])
		i = (i - 1) / children
	}
	for {
		first := children*i + 1
		least := first
		for c := first + 1; c < min(first+children, len(h)); c++ {
			if h[c].at < h[least].at {
				least = c
			}
		}
		if least >= len(h) || it.at <= h[least].at {
			break
		}
		h.put(i, h[least])
		i = least
	}
	h.put(i, it)
}
