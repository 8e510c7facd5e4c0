//go:build !unix

package faults

import (
	"errors"
	"os"
)

func suspend(*os.Process) error { return errors.ErrUnsupported }
func resume(*os.Process) error  { return errors.ErrUnsupported }
func dump(*os.Process) error    { return errors.ErrUnsupported }
