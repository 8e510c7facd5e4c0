// Package script puts the Lua commands of core together from their parts: as core sends them, and as tests and
// benchmarks look for them.
package script

import (
	"cmp"
	"io/fs"
	"regexp"
	"strings"
)

// Values of pubsub.lua: by which command a server publishes, and whether it knows all who subscribe. The nodes of a
// cluster pass plain messages on to one another.
var (
	Plain   = map[string]string{}
	Cluster = map[string]string{"COUNTS": "false"}
	Sharded = map[string]string{"PUBLISH": "'SPUBLISH'"}
)

var (
	include = regexp.MustCompile(`(?m)^ *-- include \w+$`)
	// Redis takes no text of 16 KiB from a client that has yet to give its password, and does not say then what is missing.
	comment = regexp.MustCompile(`(?m)^ *--.*\n`)
	// A constant is written in place of its name: an upvalue of each function that uses it would cost each command.
	constant = regexp.MustCompile(`(?m)^local ([A-Z_]+) = (\S+).*\n`)
	word     = regexp.MustCompile(`\b[A-Z_]+\b`)
)

// Text returns a script of a folder, with the parts that it includes. Some of its constants have other values than the
// files say.
func Text(folder fs.FS, name string, values map[string]string) (string, error) {
	text, err := expand(folder, name)
	text = comment.ReplaceAllString(text, "")
	constants := map[string]string{}
	for _, c := range constant.FindAllStringSubmatch(text, -1) {
		constants[c[1]] = cmp.Or(values[c[1]], c[2])
	}
	text = constant.ReplaceAllString(text, "")
	return word.ReplaceAllStringFunc(text, func(w string) string { return cmp.Or(constants[w], w) }), err
}

func expand(folder fs.FS, path string) (string, error) {
	text, err := fs.ReadFile(folder, path+".lua")
	whole := include.ReplaceAllStringFunc(string(text), func(line string) string {
		part, failed := expand(folder, "parts/"+strings.TrimPrefix(strings.TrimSpace(line), "-- include "))
		err = cmp.Or(err, failed)
		return part
	})
	return whole, err
}
