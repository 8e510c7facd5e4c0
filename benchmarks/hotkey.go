package main

import (
	"context"
	"fmt"
)

// hotKey is the row where the goroutines of one process all want the same lock,
// and do nothing with it: how fast it goes from hand to hand, and how fairly.
func hotKey(goroutines int) row {
	return row{
		name:      fmt.Sprintf("hot-%d", goroutines),
		title:     fmt.Sprintf("One hot key, 1 process, %d goroutines, empty section", goroutines),
		libraries: everyLibrary,
		base:      floorName,
		columns: []figure{cyclesPerSecond, commandsPer, redisCPU, fairness, neverServed, waitP50, waitP99, waitMax,
			clientCPU, allocsPer},
		measure: func(ctx context.Context, b *bench, lib library) (figures, error) {
			a := new(arena)
			workers := make([]*worker, goroutines)
			for i := range workers {
				workers[i] = &worker{spots: wants{}.spots(a, i), section: func() {}}
			}
			return b.cycles(ctx, lib, b.server.Addr(), workers, a)
		},
	}
}
