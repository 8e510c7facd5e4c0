package redistest

import (
	"os"
	"syscall"
)

const (
	memory = "/dev/shm"
	// roomy is how much must be free there: containers get 64 MB of it.
	roomy = 32 << 20
)

// makeDirectory makes a directory for the files of one server, in memory where the
// system has room there: an append-only file, the state of a sentinel and that of a
// cluster node are synced at every change, and a disk that is busy with something
// else makes the server wait.
func makeDirectory() (string, error) {
	var free syscall.Statfs_t
	if syscall.Statfs(memory, &free) == nil && free.Bavail*uint64(free.Bsize) >= roomy {
		if dir, err := os.MkdirTemp(memory, "redistest"); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", "redistest")
}
