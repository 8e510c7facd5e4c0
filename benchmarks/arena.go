package main

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// arena is what the workers of a run share, and all that tells them when to
// measure. Between processes it lies in shared memory, so that the check of
// exclusion costs no message to anybody. It must not hold pointers.
type arena struct {
	phase atomic.Int32
	ready atomic.Int32 // processes that are prepared

	inUse      [64]atomic.Int64 // of the keys that all dispute; see spot
	violations atomic.Int64     // how often somebody was inside who had to wait

	// For the hand-off, see handoff.go.
	holder     atomic.Int64
	waiting    atomic.Int64
	releasedAt atomic.Int64
	returnedAt atomic.Int64
}

// The phases of a run.
const (
	warmingUp = iota
	measuring
	leasesEnd // of a process that has died; see killed.go
	over
)

// enter notes that somebody is inside, and checks that there is room.
//
// It does not count once the run is over: then the workers' contexts are
// cancelled, and rueidislock frees a lock whose context ends, as it promises.
func (a *arena) enter(s spot) {
	part, room := s.form.size()
	for _, n := range s.inUse {
		if n.Add(part) > room && a.phase.Load() != over {
			a.violations.Add(1)
		}
	}
}

// leave must come before the release is sent.
func (a *arena) leave(s spot) {
	part, _ := s.form.size()
	for _, n := range s.inUse {
		n.Add(-part)
	}
}

// shareArena returns an arena in a file without a name, for child processes.
func shareArena() (*arena, *os.File, error) {
	f, err := os.CreateTemp("", "latchkey-benchmarks")
	if err != nil {
		return nil, nil, err
	}
	if err = os.Remove(f.Name()); err == nil {
		if err = f.Truncate(int64(unsafe.Sizeof(arena{}))); err == nil {
			var a *arena
			if a, err = mapArena(f); err == nil {
				return a, f, nil
			}
		}
	}
	_ = f.Close()
	return nil, nil, err
}

// mapArena is the arena in a file that shareArena made. It stays mapped until
// the process ends.
func mapArena(f *os.File) (*arena, error) {
	memory, err := syscall.Mmap(int(f.Fd()), 0, int(unsafe.Sizeof(arena{})), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	return (*arena)(unsafe.Pointer(&memory[0])), nil
}

// unmap gives the memory of shareArena back.
func (a *arena) unmap() {
	_ = syscall.Munmap(unsafe.Slice((*byte)(unsafe.Pointer(a)), unsafe.Sizeof(arena{})))
}
