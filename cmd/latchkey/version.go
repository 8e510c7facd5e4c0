package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version tells which latchkey this is: the version of the module, or the commit that it was built from.
func version() string {
	of := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			of = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && of == "(devel)" {
				of = s.Value
			}
		}
	}
	return fmt.Sprintf("latchkey %s, %s, %s/%s", of, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
