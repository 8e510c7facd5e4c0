package redistest

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Clock is that of a Server, as far as it tells the time of day. Its methods may be called from several goroutines.
type Clock struct {
	mu     sync.Mutex
	file   *os.File // of one number: by how many microseconds it differs
	offset time.Duration
}

// clockSource has a program read its time of day from the machine, and add what a file says.
const clockSource = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

__attribute__((constructor)) static void find_clock(void) {
	int file = open(getenv("REDISTEST_CLOCK"), O_RDONLY);
	void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
	if (page == MAP_FAILED) _exit(97);
	offset = page;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone) {
	struct timespec t;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	int64_t us = (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000 + (offset ? *offset : 0);
	tv->tv_sec = us / 1000000;
	tv->tv_usec = us % 1000000;
	return 0;
}
`

// StartWithClock is Start for a server whose clock can be set. Without a C compiler the clock is nil.
func StartWithClock(tb testing.TB, args ...string) (*Server, *Clock) {
	tb.Helper()
	dir := tb.TempDir()
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, []byte(clockSource), 0o600); err != nil {
		tb.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		tb.Logf("the clock of Redis is not set, for want of a C compiler: %v %s", err, out)
		return Start(tb, args...), nil
	}
	file, err := os.Create(filepath.Join(dir, "clock"))
	if err != nil {
		tb.Fatal(err)
	}
	c := &Clock{file: file}
	tb.Cleanup(func() { _ = file.Close() })
	c.SetBack(tb, 0)
	return start(tb, []string{"LD_PRELOAD=" + library, "REDISTEST_CLOCK=" + file.Name()}, args), c
}

// SetBack sets the clock back.
func (c *Clock) SetBack(tb testing.TB, by time.Duration) {
	tb.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset -= by
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(c.offset.Microseconds())), 0); err != nil {
		tb.Fatal(err)
	}
}
