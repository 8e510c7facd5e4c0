package schedule

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

type nothing struct {
	Timer
	_ [376]byte // what a lock takes beside it
}

func (*nothing) Due(Time) {}

// A heap gives the same as a list that is sorted each time, and its events know their places.
func TestHeapIsSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var h heap
		var all []Event
		times := map[Event]Time{}
		for range 1 + r.IntN(60) {
			all = append(all, new(nothing))
		}
		for range 400 {
			switch e := all[r.IntN(len(all))]; {
			case r.IntN(3) > 0:
				times[e] = Time(1 + r.IntN(20)) // some are of one time
				h.set(item{times[e], e})
			case e.timer().place > 0:
				if got := h.remove(int(e.timer().place) - 1); got != e {
					t.Fatal("it removed another")
				}
				delete(times, e)
			}
			if len(h) != len(times) {
				t.Fatalf("%d events, want %d", len(h), len(times))
			}
			for i, it := range h {
				if it.event.timer().place != int32(i+1) || it.at != times[it.event] {
					t.Fatalf("place %d has an event of %d, which is in place %d and of %d", i+1, it.at, it.event.timer().place, times[it.event])
				}
			}
		}
		var want, got []Time
		for _, at := range times {
			want = append(want, at)
		}
		slices.Sort(want)
		for len(h) > 0 {
			got = append(got, h[0].at)
			if e := h.remove(0); e.timer().place != 0 {
				t.Fatal("what was removed has a place")
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v\nwant %v", got, want)
		}
	}
}

// BenchmarkHeapOfAMillion is what a renewal does: it comes due, is set to the end of its lease, and to the next one
// when it is answered.
func BenchmarkHeapOfAMillion(b *testing.B) {
	const events, grain = 1_000_000, Time(500 * time.Millisecond)
	var h heap
	for i := range Time(events) {
		h.set(item{i * 20 / events * grain, new(nothing)})
	}
	var sent []item
	for b.Loop() {
		at := h[0].at
		e := h.remove(0)
		h.set(item{at + 59*grain + Time(len(sent)), e})
		if sent = append(sent, item{at + 20*grain, e}); len(sent) == 512 {
			for _, it := range sent {
				h.set(it)
			}
			sent = sent[:0]
		}
	}
}
