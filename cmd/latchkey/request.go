package main

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// requestKey is the key of the lock of an idempotent request: scope as key functions write it, such as
// value.userID=42, and the Idempotency-Key that the client has sent, in quotes or not.
func requestKey(scope, key string) string {
	if text, quoted := strings.CutPrefix(key, `"`); quoted {
		key = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(strings.TrimSuffix(text, `"`))
	}
	escaped := strings.NewReplacer(`\`, `\\`, `:`, `\:`, `=`, `\=`).Replace(key)
	sum := sha256.Sum256([]byte(scope + ":Idempotency-Key=" + escaped))
	return "idempotent:" + hex.EncodeToString(sum[:])
}
