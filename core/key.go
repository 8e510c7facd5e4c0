package core

import (
	"fmt"

	"github.com/latchkey-go/latchkey/core/internal/store"
)

// name returns what Redis calls the lock of a key.
func (l *Locker) name(key string) (store.Name, error) {
	if key == "" {
		return store.Name{}, fmt.Errorf("%w: empty", ErrInvalidKey)
	}
	if len(key) > store.MaxKeyBytes {
		return store.Name{}, fmt.Errorf("%w: %d bytes, at most %d are allowed (keyfunc.Hash shortens it)", ErrInvalidKey, len(key), store.MaxKeyBytes)
	}
	return store.NewName(l.defaults.Prefix, key), nil
}

// usableName is name for an operation, as errors call it, of a Locker that must not be closing.
func (l *Locker) usableName(doing, key string) (store.Name, error) {
	n, err := l.name(key)
	if err == nil && l.isClosing() {
		err = closed(doing, key)
	}
	return n, err
}
