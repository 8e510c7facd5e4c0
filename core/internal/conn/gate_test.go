//go:build go1.25

package conn_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// full returns a gate without room, and one of the calls that are in.
func full(t *testing.T, tell func(conn.Load)) (*conn.Gate, conn.Admission) {
	g := conn.NewGate(time.Second, tell)
	var a conn.Admission
	for range 64 {
		var err error
		if a, err = g.Enter(background); err != nil {
			t.Fatal(err)
		}
	}
	return g, a
}

func TestGateAdmitsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := full(t, nil)
		entered := make(chan string, 2)
		for _, name := range []string{"older", "newer"} {
			go func() {
				if _, err := g.Enter(background); err == nil {
					entered <- name
				}
			}()
			synctest.Wait()
		}
		a.Leave(errors.New("neither an answer nor none")) // of which nothing follows
		if synctest.Wait(); len(entered) != 1 || <-entered != "newer" {
			t.Error("the newer call is not in alone")
		}
		time.Sleep(time.Second)
	})
}

func TestGateRefusesWhatWouldBeTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loads []conn.Load
		g, a := full(t, func(l conn.Load) { loads = append(loads, l) })
		time.Sleep(time.Millisecond)
		a.Leave(nil) // the distance is 1 ms, and the window grows by one with each answer
		time.Sleep(49 * time.Millisecond)
		a.Leave(nil)
		for range 4 {
			if _, err := g.Enter(background); err != nil {
				t.Fatal(err)
			}
		}
		for name, c := range map[string]struct {
			until time.Duration // of the caller
			want  time.Duration
			err   error
		}{
			"long":      {time.Hour, 201 * time.Millisecond, nil}, // a quarter of the timeout, less what commands wait at the server
			"short":     {60 * time.Millisecond, 11 * time.Millisecond, nil},
			"too short": {40 * time.Millisecond, 0, nil},
		} {
			ctx, cancel := context.WithTimeout(background, c.until)
			began := time.Now()
			_, err := g.Enter(ctx)
			var overloaded *conn.Overloaded
			if took := time.Since(began).Truncate(time.Millisecond); took != c.want || !errors.As(err, &overloaded) || conn.OutcomeOf(err) != conn.NotSent {
				t.Errorf("%s: %v after %v, want %v", name, err, took, c.want)
			}
			cancel()
		}
		ctx, cancel := context.WithCancel(background)
		cancel()
		if _, err := g.Enter(ctx); !errors.Is(err, context.Canceled) || conn.OutcomeOf(err) != conn.NotSent {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		first, last := loads[1], loads[len(loads)-1]
		if !first.Overloaded || first.For != 0 || first.Answer != 50*time.Millisecond || last.Overloaded || last.For < 2*time.Second {
			t.Errorf("%+v", loads)
		}
	})
}

// Taken out, an outage is called an overload.
func TestGateOfServersThatAreSilentRefusesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a := full(t, func(l conn.Load) {
			if l.Overloaded {
				t.Errorf("%+v", l)
			}
		})
		time.Sleep(time.Second)
		a.Leave(conn.ErrNoAnswer)
		_, err := g.Enter(background)
		if !errors.Is(err, conn.ErrNoAnswer) || conn.OutcomeOf(err) != conn.NotSent {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}

func TestStoppedGateTellsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told := 0
		g, a := full(t, func(conn.Load) { told++ })
		time.Sleep(time.Millisecond)
		a.Leave(nil) // the window grows by one
		for range 2 {
			if _, err := g.Enter(background); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := g.Enter(background); err == nil {
			t.Error("there is room")
		}
		before := told
		g.Stop()
		time.Sleep(time.Minute)
		if synctest.Wait(); before == 0 || told != before {
			t.Errorf("told %d times, and then %d", before, told)
		}
	})
}
