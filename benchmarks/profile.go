package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

// startProfiles begins the profiles that have a file name.
func startProfiles(cpu, memory string) (func() error, error) {
	stop := func() error { return nil }
	if cpu != "" {
		f, err := os.Create(cpu)
		if err != nil {
			return nil, err
		}
		if err := pprof.StartCPUProfile(f); err != nil {
			return nil, firstError(err, f.Close())
		}
		stop = func() error {
			pprof.StopCPUProfile()
			return f.Close()
		}
	}
	if memory == "" {
		return stop, nil
	}
	runtime.MemProfileRate = 4096 // finer than the default, and still cheap
	return func() error {
		f, err := os.Create(memory)
		if err == nil {
			runtime.GC()
			err = firstError(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
		}
		return firstError(err, stop())
	}, nil
}
