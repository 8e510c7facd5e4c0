//go:build go1.25

package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/latchkey-go/latchkey/core"
)

const (
	lease     = time.Second
	workerEnv = "LATCHKEY_FAULTS_WORKER"
)

// worker is this process, when it is one.
type worker struct {
	setup     setup
	locker    *core.Locker
	clients   []redis.UniversalClient
	deadlines *deadlines
	stalls    stalls
	sequence  atomic.Int64
	shutdown  func()       // of what runs tasks; nil: nothing does
	failing   atomic.Int32 // tasks, in per cent

	out   sync.Mutex // standard output
	asked sync.Map   // requests to the store, by id: chan access
}

// workerMain is what a worker process does, from its set-up to the order to leave,
// or until the test dies, which closes its standard input.
func workerMain(config string) error {
	w := &worker{}
	if err := json.Unmarshal([]byte(config), &w.setup); err != nil {
		return err
	}
	redis.SetLogger(silent{}) // connections that fail are the point here
	orders := make(chan order)
	go w.listen(orders)
	before := goleak.IgnoreCurrent()
	if err := w.connect(); err != nil {
		return err
	}
	if w.setup.Tasks {
		w.serve()
	}
	ctx, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { w.stalls.watch(ctx) })
	w.send(message{State: "ready"})
	w.obey(orders)
	stop()
	background.Wait()
	w.send(message{State: "left", Note: w.leave(before)})
	return nil
}

// connect makes the clients and the Locker.
func (w *worker) connect() error {
	var err error
	if w.deadlines, err = newDeadlines(w.setup.Members, w.setup.Redis.Replicas); err != nil {
		return err
	}
	options := append(w.setup.Redis.options(), core.Lease(lease), core.Logger(slog.New(slog.DiscardHandler)))
	if w.setup.Timeout > 0 {
		options = append(options, core.Timeout(w.setup.Timeout))
	}
	switch w.clients = w.setup.Redis.clients(w.deadlines); len(w.clients) {
	case 1:
		w.locker, err = core.New(w.clients[0], options...)
	default:
		w.locker, err = core.NewQuorum(w.clients, options...)
	}
	return err
}

// listen reads the orders and hands them on. Replies of the store go to who waits
// for them.
func (w *worker) listen(orders chan<- order) {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			panic(err)
		}
		if o.Reply == nil {
			orders <- o
		} else if reply, ok := w.asked.LoadAndDelete(o.Reply.ID); ok {
			reply.(chan access) <- *o.Reply
		}
	}
	os.Exit(0) // the test is gone, and nobody to report to
}

// obey carries the orders out until the one to leave.
func (w *worker) obey(orders <-chan order) {
	hurry, rest := func() {}, func() {}
	scene := &scene{worker: w}
	for o := range orders {
		switch o.Do {
		case "work":
			hurry, rest = w.begin(o)
		case "connect":
			w.connectOften(o.Times)
			w.send(message{State: "connected"})
		case "serve":
			w.serve()
			w.send(message{State: "serving"})
		case "fail":
			w.failing.Store(int32(o.Long))
		case "hurry":
			hurry()
		case "rest":
			rest()
			w.send(message{State: "resting"})
		case "leave":
			return
		default:
			w.send(message{State: scene.play(o)})
		}
	}
}

// begin sets the actors to work. From hurry on they hold no lock for long; rest ends
// their work, and returns when they rest.
func (w *worker) begin(o order) (hurry, rest func()) {
	ctx, cancel := context.WithCancel(context.Background())
	leisure, hurry := context.WithCancel(ctx)
	var actors sync.WaitGroup
	for i := range w.setup.Actors {
		actors.Go(func() { w.act(ctx, leisure, i, o) })
	}
	return hurry, func() {
		hurry()
		cancel()
		actors.Wait()
	}
}

// leave closes all and returns what is left of it.
func (w *worker) leave(before goleak.Option) string {
	ctx, cancel := context.WithTimeout(context.Background(), patience/3)
	defer cancel()
	note := ""
	w.endServing()
	if err := w.locker.Close(ctx); err != nil {
		note = fmt.Sprintf("Close: %v\n", err)
	}
	awaitIdleClients()
	for _, c := range w.clients {
		if err := c.Close(); err != nil {
			note += fmt.Sprintf("closing the client: %v\n", err)
		}
	}
	// A command that hangs ends with the read timeout of go-redis, 3 s.
	var err error
	for end := time.Now().Add(patience / 3); time.Now().Before(end); {
		if err = goleak.Find(before); err == nil {
			return note
		}
	}
	return note + err.Error()
}

// awaitIdleClients waits until no command is under way. The Close of go-redis takes
// the deadline from a connection in use and then waits for who reads from it: on a
// silent one for ever. In a cluster that may be a question about its state, which no
// Locker can wait for, and which goes to one silent node after the other, 3 s each.
func awaitIdleClients() {
	stacks := make([]byte, 1<<20)
	awaitNone(20*time.Second, func() (busy []string) {
		all := string(stacks[:runtime.Stack(stacks, true)])
		for _, f := range []string{"(*baseClient).withConn", "(*clusterStateHolder)"} {
			if strings.Contains(all, "redis/go-redis/v9."+f) {
				busy = append(busy, f)
			}
		}
		return busy
	})
}

func (w *worker) nextID() string {
	return strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(w.sequence.Add(1), 10)
}

func (w *worker) report(v visit) { w.send(message{Visit: &v}) }

func (w *worker) send(m message) {
	line, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	w.out.Lock()
	defer w.out.Unlock()
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		os.Exit(0) // the test is gone
	}
}

// ask asks the store.
func (w *worker) ask(a access) access {
	a.ID = w.sequence.Add(1)
	reply := make(chan access, 1)
	w.asked.Store(a.ID, reply)
	w.send(message{Store: &a})
	return <-reply
}

// read and write work on the counters of a key, with the token of its lock.
func (w *worker) read(k *core.Lock) access {
	return w.ask(access{Key: k.Key(), Owner: fmt.Sprintf("%p of worker %d", k, w.setup.Worker), Token: k.Token()})
}

func (w *worker) write(found access) access {
	found.Write, found.Fenced, found.Unfenced = true, found.Fenced+1, found.Unfenced+1
	return w.ask(found)
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}
