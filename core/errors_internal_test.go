package core

import (
	"context"
	"testing"
	"time"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// Clients and the log are told of an overload once.
func TestAnOverloadIsToldOnce(t *testing.T) {
	const why = ": redis is asked for more than it can do: 64 commands wait, an answer takes 411ms"
	cause := &conn.Failure{Cause: &conn.Overloaded{Waiting: 64, Answer: 411 * time.Millisecond}}
	err := errorsOf{}.Unanswered(context.Background(), "taking", "k", cause)
	if got, want := err.Error(), "core: taking the lock"+why; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := Detail(err), `core: taking the lock "k"`+why; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
