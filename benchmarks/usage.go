package main

import (
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// usage is what this process has used up to a moment.
type usage struct {
	cpu              time.Duration // user and system
	mallocs, bytes   uint64
	heap, stack      uint64 // in use
	goroutinesAtHand int
}

func usageNow() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{
		cpu: cpuTime(), mallocs: m.Mallocs, bytes: m.TotalAlloc,
		heap: m.HeapAlloc, stack: m.StackInuse, goroutinesAtHand: runtime.NumGoroutine(),
	}
}

// usageSettled is usageNow after all garbage is gone. One collection leaves what
// finalizers and pools hold.
func usageSettled() usage {
	for range 3 {
		runtime.GC()
	}
	return usageNow()
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it cannot fail for RUSAGE_SELF
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// monotonic is the machine's monotonic clock in nanoseconds: the same one in
// every process, which the time package does not promise.
func monotonic() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}
