package keyfunc

import (
	"crypto/sha256"
	"encoding/hex"
)

// Hash replaces a key by its SHA-256, 64 hexadecimal digits: for keys that are
// longer than a lock's name may be, or that should not be read in Redis and in
// logs. What can be guessed, such as an e-mail address, can be guessed from its
// hash too.
//
// It fails as f does. It panics when f is nil.
func Hash[S any](f Func[S]) Func[S] {
	mustFunc("Hash", f)
	return func(s S) (string, error) {
		key, err := apply(f, s)
		if err != nil {
			return "", err
		}
		sum := sha256.Sum256([]byte(key))
		return hex.EncodeToString(sum[:]), nil
	}
}
