package keyfunc

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash replaces the value of a part by its SHA-256, 64 hexadecimal digits, and keeps
// its name: for values that are longer than a lock's name may be, or that should not
// be read in Redis and in logs. What can be guessed, such as an e-mail address, can
// be guessed from its hash too. Around several parts it is the hash of all, with
// their names in it, and has no name.
//
// It fails as f does. It panics when f is nil.
func Hash[S any](f Func[S]) Func[S] {
	mustFunc("Hash", f)
	return canonical(f, func(value string) (string, error) {
		sum := sha256.Sum256([]byte(value))
		return hex.EncodeToString(sum[:]), nil
	})
}
