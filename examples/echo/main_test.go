package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// A storm of transfers by ByAll: they are done, on a busy machine perhaps not all, and the balances are right.
func TestTransfersThatCrossOneAnother(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		var done, refused, money, wrong int
		if n, _ := fmt.Sscanf(line, "/transfers %d %d %d %d", &done, &refused, &money, &wrong); n > 0 {
			if done < storm/4 || done+refused != storm || money != accounts*beginning || wrong != 0 {
				t.Errorf("%s", line)
			}
			t.Log(out.String())
			return
		}
	}
	t.Errorf("no line about /transfers in %s", &out)
}
