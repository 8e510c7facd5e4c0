package main

import (
	"context"
	"testing"
)

// It ends when it is interrupted, whatever is held then and waited for.
func TestRun(t *testing.T) {
	*serve = "127.0.0.1:0"
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	if err := run(ctx); err != nil {
		t.Fatal(err)
	}
}
