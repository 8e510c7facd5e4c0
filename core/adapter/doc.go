// Package adapter has what only authors of adapters need, on top of package core: an adapter
// makes middleware for a framework, which takes a lock for each request or task. See
// docs/adapters.md for what an adapter has to do.
package adapter

import (
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

var inside = core.ForAdapter(option.Key{})

type settings = option.Settings
