package main

import "time"

const shownFor = 1000 // ms of a timeline

// snapshot is all that the page shows at one moment. It has the same size however
// long the sale runs.
type snapshot struct {
	State   string         `json:"state"` // ready, running, over, stopped
	Stock   int            `json:"stock"`
	Buyers  int            `json:"buyers"`
	Servers int            `json:"servers"`
	Within  float64        `json:"within"` // seconds in which the buyers come
	From    int64          `json:"from"`   // of both timelines, as in order
	To      int64          `json:"to"`
	Sides   []sideSnapshot `json:"sides"` // without the lock, with it
}

type sideSnapshot struct {
	Left       int     `json:"left"`
	Sold       int     `json:"sold"`
	TurnedAway int     `json:"turnedAway"`
	Failed     int     `json:"failed"`
	InLine     int     `json:"inLine"`
	MostInHand int     `json:"mostInHand"`
	PerSecond  int     `json:"perSecond"` // buyers answered
	Orders     []order `json:"orders"`    // the last ones, oldest first
}

func (s *show) snapshot() snapshot {
	out := snapshot{State: "ready", Stock: s.stock, Buyers: *buyers, Servers: len(s.instances), Within: s.within.Seconds()}
	r := s.current.Load()
	if r == nil {
		empty := sideSnapshot{Left: s.stock, Orders: []order{}}
		out.Sides = []sideSnapshot{empty, empty}
		out.From, out.To = timeline(out.Sides...)
		return out
	}
	out.Buyers = r.buyers
	switch {
	case !r.isOver():
		out.State = "running"
	case r.stopped.Load():
		out.State = "stopped"
	default:
		out.State = "over"
	}
	for _, side := range r.sides {
		out.Sides = append(out.Sides, side.snapshot())
	}
	out.From, out.To = timeline(out.Sides...)
	return out
}

// timeline is the last second in which all sides took orders, or what is known of it.
func timeline(sides ...sideSnapshot) (from, to int64) {
	var first, last int64 // ends of what sides have taken
	for _, s := range sides {
		n := len(s.Orders)
		if n == 0 {
			continue
		}
		if n == lastOrders { // earlier ones are lost
			from = max(from, s.Orders[0].To)
		}
		end := s.Orders[n-1].To
		if first == 0 || end < first {
			first = end
		}
		last = max(last, end)
	}
	to = first
	if to <= from {
		to = last
	}
	to = max(to, shownFor)
	return max(from, to-shownFor), to
}

func (s *side) snapshot() sideSnapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.ended
	if now.IsZero() {
		now = time.Now()
	}
	out := sideSnapshot{
		Left: s.left, Sold: s.sold, TurnedAway: s.turnedAway, Failed: s.failed,
		InLine: s.visits - s.inHand, MostInHand: s.mostInHand,
		PerSecond: int(float64(s.sold+s.turnedAway) / max(now.Sub(s.started), interval).Seconds()),
		Orders:    make([]order, 0, len(s.orders)),
	}
	out.Orders = append(append(out.Orders, s.orders[s.nextOrder:]...), s.orders[:s.nextOrder]...)
	return out
}
