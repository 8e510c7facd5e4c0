package schedule

// Event is what a [Scheduler] can call. It embeds an [Entry], which provides what is
// unexported.
type Event interface {
	// Due is called once at or after the time set, by the goroutine that calls all
	// events of the Scheduler, so it must not block. It may set any event, its own
	// too, to come again. now is the present time. The Scheduler holds no lock: the
	// event may have been removed or moved meanwhile and must look for itself.
	Due(now Time)

	entered
}

type entered interface{ entry() *Entry }

// Entry is an [Event]'s place in a [Scheduler]. The zero value is ready; an event
// belongs to one Scheduler, and must not be copied while it is scheduled.
type Entry struct {
	bucket *bucket // nil: not scheduled
	place  int     // in it
}

func (e *Entry) entry() *Entry { return e }
