package core

import (
	"context"
	"log/slog"

	"github.com/latchkey-go/latchkey/internal/limitedlog"
)

// report is the log of what no caller can be told.
type report struct{ limitedlog.Log }

// problem is for what may have done harm.
func (r *report) problem(ctx context.Context, kind string, args ...any) {
	r.Limited(ctx, slog.LevelError, kind, args...)
}

// warn is for what may recover by itself.
func (r *report) warn(ctx context.Context, kind string, args ...any) {
	r.Limited(ctx, slog.LevelWarn, kind, args...)
}
