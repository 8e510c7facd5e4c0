//go:build !linux

package redistest

import "os"

// makeDirectory makes a directory for the files of one server.
func makeDirectory() (string, error) { return os.MkdirTemp("", "redistest") }
