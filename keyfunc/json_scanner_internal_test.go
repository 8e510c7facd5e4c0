package keyfunc

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// FuzzScannerTakesWhatEncodingJSONTakes shows that the scanner knows what a JSON text is.
func FuzzScannerTakesWhatEncodingJSONTakes(f *testing.F) {
	for _, doc := range []string{
		"", " ", "\x00", "null", "nul", "nulll", "true", "false", "fals", `""`, `"a`, "\"a\x1f\"",
		`"\u00e9"`, `"\u00g9"`, `"\x"`, `"\`, `"\u12`, "\"\xff\"",
		`0`, `-0`, `-`, `01`, `1.`, `1.5`, `.5`, `1e`, `1e+`, `1E-07`, `+1`, `-a`, `1 2`,
		`{}`, `{`, `}`, `[]`, `[`, `]`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `{"a":1]`,
		`{"a"}`, `{"a":}`, `{"a":1,}`, `{,"a":1}`, `{1:2}`, `{"a":1 "b":2}`, `{"a" : [ { } , null ] }`, `{a:1}`, `"a":1`, `[]]`, "\ufeff1",
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
		strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000), strings.Repeat(`{"a":`, 10001) + "1" + strings.Repeat("}", 10001),
	} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) { takesWhatEncodingJSONTakes(t, doc) })
}

// TestScannerTakesWhatEncodingJSONTakes does the same with texts that are nearly JSON.
func TestScannerTakesWhatEncodingJSONTakes(t *testing.T) {
	piece := rapid.SampledFrom(strings.Fields(`{ } [ ] , : " \ 1 0 - . e E + null true "a" "a": "\u00e9" ` + "\x01 \xff \t é"))
	value := rapid.SampledFrom(strings.Fields(`1 -0.5e+7 null "a" [] {} [1,{"a":[]}] {"a":1,"b":{"c":"\n"}} [[],[2]]`))
	rapid.Check(t, func(t *rapid.T) {
		doc := value.Draw(t, "value")
		at := rapid.IntRange(0, len(doc)).Draw(t, "at")
		until := min(len(doc), at+rapid.IntRange(0, 1).Draw(t, "length"))
		takesWhatEncodingJSONTakes(t, []byte(doc[:at]+strings.Join(rapid.SliceOfN(piece, 0, 2).Draw(t, "pieces"), "")+doc[until:]))
	})
}

func takesWhatEncodingJSONTakes(t interface{ Fatalf(string, ...any) }, doc []byte) {
	s := &scanner{doc: doc}
	err := s.skip()
	if s.next(); err == nil && s.at < len(doc) {
		err = errNotJSON
	}
	if want := json.Valid(doc) && utf8.Valid(doc); (err == nil) != want {
		t.Fatalf("%q: %v; encoding/json takes it: %v", doc, err, want)
	}
}
