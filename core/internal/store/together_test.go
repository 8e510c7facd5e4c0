package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/latchkey-go/latchkey/core/internal/conn"
)

// A reply to several releases has a part for each; one of another number says nothing of any.
func TestReplyToSeveralReleases(t *testing.T) {
	for text, want := range map[string][]int{",": {0, 0}, "3,": {3, 0}, ",12": {0, 12}, "": nil, "3": nil, "1,2,3": nil} {
		results := make([]Result[Released], 2)
		decodeReleases(results, conn.Reply{Value: text}, nil)
		var heard []int
		for _, r := range results {
			if r.Err == nil && r.Answer.Found {
				heard = append(heard, r.Answer.Heard)
			}
		}
		if !slices.Equal(heard, want) {
			t.Errorf("%q: %+v", text, results)
		}
	}
	for _, r := range []conn.Reply{{Value: int64(1)}, {Value: "x,-1"}} {
		results := make([]Result[Released], 2)
		decodeReleases(results, r, nil)
		if results[0].Err == nil || results[1].Err == nil {
			t.Errorf("%v: %+v", r.Value, results)
		}
	}
	failed := errors.New("failed")
	results := make([]Result[Released], 2)
	decodeReleases(results, conn.Reply{}, failed)
	if results[0].Err != failed || results[1].Err != failed {
		t.Errorf("%+v", results)
	}
}
