package main

import (
	"os"
	"testing"
)

// TestMain lets the test program be the children of the rows that need
// processes.
func TestMain(m *testing.M) {
	runChild()
	os.Exit(m.Run())
}
