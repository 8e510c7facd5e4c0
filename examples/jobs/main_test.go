package main

import (
	"context"
	"testing"
)

// The program itself checks what came of it.
func TestRun(t *testing.T) {
	if err := run(context.Background()); err != nil {
		t.Fatal(err)
	}
}
