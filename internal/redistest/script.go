package redistest

import (
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
)

// ReadScript returns the text of one of core's scripts as Redis gets it, and its [Digest].
// It reads core's files, from a test anywhere in this module.
func ReadScript(name string) (text, digest string, err error) {
	core, err := rootOf("core/internal")
	if err != nil {
		return "", "", err
	}
	files := []string{"store/scripts/" + name}
	if name == "acquire" || name == "renew" || name == "release" {
		files = append(files, "conn/batch")
	}
	for _, file := range files {
		part, err := os.ReadFile(filepath.Join(core, file+".lua"))
		if err != nil {
			return "", "", err
		}
		text += string(part)
	}
	shared, err := os.ReadFile(filepath.Join(core, "store/scripts/next_token.lua"))
	if err != nil {
		return "", "", err
	}
	text = strings.ReplaceAll(text, "-- include next_token", string(shared))
	return text, Digest(text), nil
}

// Digest is the name by which EVALSHA calls a script.
func Digest(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// rootOf returns where a folder of this module is.
func rootOf(folder string) (string, error) {
	for at := "."; ; at = filepath.Join("..", at) {
		found := filepath.Join(at, folder)
		if _, err := os.Stat(found); err == nil {
			return found, nil
		}
		if whole, err := filepath.Abs(at); err != nil || whole == filepath.Dir(whole) {
			return "", os.ErrNotExist
		}
	}
}
