package redistest

import (
	"cmp"
	"crypto/sha1"
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// pubsubs are the values of pubsub.lua: for a single server, as the file has them, for sharded
// pub/sub, and for a cluster.
var pubsubs = []map[string]string{
	{},
	{"PUBLISH": "'SPUBLISH'"},
	{"COUNTS": "false"},
}

var (
	include = regexp.MustCompile(`(?m)^ *-- include \w+$`)
	comment = regexp.MustCompile(`(?m)^ *--.*\n`)
	// constant is written in place of its name.
	constant = regexp.MustCompile(`(?m)^local ([A-Z_]+) = (\S+).*\n`)
)

// ReadScript returns the text of one of core's scripts as a single server gets it, and its
// [Digest]. It reads the files of core that this was built from.
func ReadScript(name string) (text, digest string, err error) {
	text, err = readScript(name, pubsubs[0])
	return text, Digest(text), err
}

// Merged are the scripts that do several calls of another in one command.
var Merged = map[string]string{"acquire": "take_all", "release": "free_all", "renew": "renew_all"}

// Digests returns those of a script, and of the one that merges its calls, as servers of any kind get
// them.
func Digests(name string) (digests []string, err error) {
	for _, words := range pubsubs {
		for _, name := range []string{name, Merged[name]} {
			if name == "" {
				continue
			}
			text, err := readScript(name, words)
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
	text, err := expand(filepath.Join(core, "store/scripts"), name)
	text = comment.ReplaceAllString(text, "")
	for _, c := range constant.FindAllStringSubmatch(text, -1) {
		value := cmp.Or(pubsub[c[1]], c[2])
		text = regexp.MustCompile(`\b`+c[1]+`\b`).ReplaceAllString(strings.ReplaceAll(text, c[0], ""), value)
	}
	return text, err
}

// expand reads a script with the parts that it includes.
func expand(folder, path string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, path+".lua"))
	return include.ReplaceAllStringFunc(string(text), func(line string) string {
		part, failed := expand(folder, "parts/"+strings.TrimPrefix(strings.TrimSpace(line), "-- include "))
		if failed != nil {
			err = failed
		}
		return part
	}), err
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
