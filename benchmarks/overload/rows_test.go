package overload

import "time"

// row is one kind of overload. Without a field it is as doc.go says.
type row struct {
	name      string
	open      bool          // with a client as core.Open makes it: of latchkey only
	quorum    bool          // three servers: not of redislock
	timeout   time.Duration // of a command
	wait      time.Duration // how long a caller waits for a lock; 0: not at all
	keys      int
	usual     float64 // what is asked for, as a part of what a server can do
	times     float64 // what is asked for in the spike, as a multiple of that
	stall     bool    // in place of a spike
	endless   bool    // the spike does not end
	held      int     // locks that each process has all the time
	lease     time.Duration
	processes int
	brief     bool
	loops     int // so many goroutines call without a pause, in place of a rate
}

const (
	short    = 333 * time.Millisecond
	standard = 2 * time.Second // core's default Timeout
)

var rows = []row{
	{name: "`New`, Timeout 333 ms", timeout: short},
	{name: "`Open`, Timeout 333 ms", timeout: short, open: true},
	{name: "`New`, 2 s", timeout: standard},
	{name: "`Open`, 2 s", timeout: standard, open: true},
	{name: "10 times as much, 2 s", timeout: standard, times: 10},
	{name: "callers wait 3 s, 333 ms", timeout: short, wait: 3 * time.Second},
	{name: "one hot key, callers wait 3 s, 333 ms", timeout: short, wait: 3 * time.Second, keys: 1, usual: 0.3},
	{name: "quorum, 333 ms", timeout: short, quorum: true},
	{name: "quorum, 2 s", timeout: standard, quorum: true},
	{name: "stands still for 5 s, 333 ms", timeout: short, stall: true},
	{name: "stands still for 5 s, 2 s", timeout: standard, stall: true},
	{name: "60 held locks, lease 6 s, 333 ms", timeout: short, held: 10, lease: 6 * time.Second},
	{name: "endless, 333 ms", timeout: short, endless: true},
	{name: "endless, 2 s", timeout: standard, endless: true},
	{name: "30 processes, 333 ms", timeout: short, processes: 30},
	{name: "600 busy loops, 333 ms", timeout: short, loops: 600},
}

// briefRow is none of the table.
var briefRow = row{name: "brief, 333 ms", timeout: short, processes: 2, keys: 500, held: 2, brief: true}

// complete fills in what is as in every row.
func (r row) complete() row {
	setUnlessGiven(&r.keys, 2000)
	setUnlessGiven(&r.usual, 0.6)
	setUnlessGiven(&r.times, 5)
	setUnlessGiven(&r.lease, 30*time.Second)
	setUnlessGiven(&r.processes, 6)
	return r
}

func setUnlessGiven[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// neverRecovers says that nothing ends after which it could.
func (r row) neverRecovers() bool { return r.endless || r.loops > 0 }

// servers is how many there are.
func (r row) servers() int {
	if r.quorum {
		return 3
	}
	return 1
}

// phases are how long a run offers what.
type phases struct{ warm, spike, all time.Duration }

func (r row) phases() phases {
	p := phases{warm: 10 * time.Second, spike: 5 * time.Second, all: 75 * time.Second}
	switch {
	case r.brief:
		p = phases{warm: 4 * time.Second, spike: time.Second, all: 18 * time.Second}
	case r.neverRecovers():
		p.all = 30 * time.Second
	}
	return p
}
