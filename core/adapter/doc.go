// Package adapter has what only authors of adapters need, on top of package core. An adapter
// makes middleware for a framework, which takes a lock for each request or task;
// docs/adapters.md says what it has to do.
package adapter

import (
	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/core/internal/option"
)

var inside = core.ForAdapter(option.Key{})

type settings = option.Settings
