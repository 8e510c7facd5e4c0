package core

import (
	"log/slog"

	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

// report is the log of what no caller can be told.
type report struct{ limitedlog.Log }

// problem is for what may have done harm.
func (r *report) problem(kind string, args ...any) { r.Limited(slog.LevelError, kind, args...) }

// warn is for what may recover by itself.
func (r *report) warn(kind string, args ...any) { r.Limited(slog.LevelWarn, kind, args...) }

// info is for what somebody has asked for, each time.
func (r *report) info(kind string, args ...any) { r.Each(slog.LevelInfo, kind, args...) }
