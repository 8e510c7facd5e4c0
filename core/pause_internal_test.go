package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/schedule"
)

// OnSchedule has the scheduler of a Locker call a function in a while, which may hold it up as a pause of the process does.
func OnSchedule(l *Locker, in time.Duration, call func()) {
	l.acquirer.Scheduler.Set(&lateLine{write: call}, schedule.Now().Add(in))
}
