package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows this program; what it shows must compile.
func TestReadmeShowsThisProgram(t *testing.T) {
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```go\n"+string(program)+"```") {
		t.Error("the quick start in README.md differs from examples/quickstart/main.go")
	}
}
