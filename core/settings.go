package core

import (
	"time"

	"github.com/latchkey-go/latchkey/core/internal/option"
)

const (
	defaultPrefix  = "lock:"
	defaultLease   = 30 * time.Second
	defaultTimeout = 2 * time.Second
	// Longer ones are mistakes, which nobody would live to see the end of.
	longestLease  = 24 * time.Hour
	longestWindow = option.LongestWindow
)

// settings are what the options of New and of one call add up to.
type settings = option.Settings[Observer]
