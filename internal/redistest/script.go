package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"

	"github.com/latchkey-go/latchkey/internal/script"
)

// ReadScript returns the text of one of core's scripts as a single server gets it, and its
// [Digest]. It reads the files of core that this was built from.
func ReadScript(name string) (text, digest string, err error) {
	text, err = readScript(name, script.Plain)
	return text, Digest(text), err
}

// Merged are the scripts that do several calls of another in one command.
var Merged = map[string]string{"acquire": "take_all", "release": "free_all", "renew": "renew_all"}

// Digests returns those of a script, and of the one that merges its calls, as servers of any kind get
// them.
func Digests(name string) (digests []string, err error) {
	for _, pubsub := range []map[string]string{script.Plain, script.Cluster, script.Sharded} {
		for _, name := range []string{name, Merged[name]} {
			if name == "" {
				continue
			}
			text, err := readScript(name, pubsub)
			if err != nil {
				return nil, err
			}
			digests = append(digests, Digest(text))
		}
	}
	return digests, nil
}

func readScript(name string, pubsub map[string]string) (string, error) {
	core, err := rootOf("core/internal")
	if err != nil {
		return "", err
	}
	return script.Text(os.DirFS(filepath.Join(core, "store/scripts")), name, pubsub)
}

// Digest is the name by which EVALSHA calls a script.
func Digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// rootOf returns where a folder of this module is that this was built from, wherever it is run.
func rootOf(folder string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	found := filepath.Join(filepath.Dir(here), "../..", folder)
	_, err := os.Stat(found)
	return found, err
}
