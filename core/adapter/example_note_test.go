package adapter_test

import (
	"context"
	"fmt"
	"time"

	"github.com/latchkey-go/latchkey/core/adapter"
	"github.com/latchkey-go/latchkey/locktest"
)

// Jobs that found a key busy are noted beside it, for whoever releases it.
func ExampleAddNote() {
	t := &exampleT{}
	defer t.end()
	locker, ctx := locktest.New(t), context.Background()

	for _, job := range []string{"job 7", "job 8", "job 9"} {
		if err := adapter.AddNote(ctx, locker, "order 42", job, time.Minute); err != nil {
			fmt.Println(err)
		}
	}
	jobs, more, err := adapter.TakeNotes(ctx, locker, "order 42", 2)
	fmt.Println(jobs, more, err)
	// Output: [job 7 job 8] true <nil>
}
