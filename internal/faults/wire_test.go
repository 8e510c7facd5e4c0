package faults

import "time"

// A worker is a process of this test binary. It reads orders from its standard
// input, one JSON value a line, and writes messages to its standard output.

// setup tells a new worker, in an environment variable, what to do where.
type setup struct {
	Worker  int
	Actors  int // goroutines that visit locks
	Company int // goroutines that go with each, half of the time
	Keys    []string
	Seed    uint64
	Redis   address
	Members int           // of the quorum; 1 without one
	Timeout time.Duration // of the Locker; 0 for the one that follows from its lease
	Tasks   bool          // It runs those of asynq.
	Beside  bool          `json:"-"` // The worker is the binary of -faults.beside.
}

// address is how a worker reaches Redis.
type address struct {
	Kind   string            // single, cluster, quorum or failover
	Addrs  []string          // of the server, the nodes, the members, the sentinels
	Detour map[string]string // from an address that Redis announces to the proxy before it
	Master string            // what the sentinels call the master
	// Certificate is that of the proxies, where they speak TLS.
	Certificate []byte
	// Replicas is how many of them must have a lock before it counts; 0 where
	// nothing fails over by itself.
	Replicas int
}

// order is what the test sends to a worker.
type order struct {
	Do     string        `json:",omitempty"` // work, connect, serve, fail, hurry, rest, leave; hold, write, unlock, send, answer in a scripted scene
	Lease  time.Duration `json:",omitempty"` // with work, hold and send
	Long   int           `json:",omitempty"` // with work: per cent of the holds that outlast a renewal; with fail: of the tasks
	Times  int           `json:",omitempty"` // with connect
	Key    string        `json:",omitempty"` // with hold and send
	Wait   time.Duration `json:",omitempty"` // with send: for the answer to somebody else's request
	Status int           `json:",omitempty"` // with answer
	Reply  *access       `json:",omitempty"` // of the store
}

// message is what a worker sends to the test.
type message struct {
	State string  `json:",omitempty"` // ready, connected, serving, resting, left; holding, written, unlocked, attempt …, 201 … in a scripted scene
	Note  string  `json:",omitempty"` // with left: what has leaked
	Visit *visit  `json:",omitempty"`
	Store *access `json:",omitempty"`
	Task  *step   `json:",omitempty"`
}

// step is what has become of a task.
type step struct {
	Task, Run string
	Is        string // here, dropped; run, failed, done: of a run
	At        int64
}
