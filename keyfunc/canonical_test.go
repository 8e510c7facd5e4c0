package keyfunc_test

import (
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/latchkey-go/latchkey/keyfunc"
)

// FuzzIntCanonical compares Int with math/big.
func FuzzIntCanonical(f *testing.F) {
	for _, s := range []string{"042", "+42", "-0", "9007199254740993", "0x1", "1_0", "", "-", " 1", "٤", strings.Repeat("0", 65)} {
		f.Add(s)
	}
	number := regexp.MustCompile(`^[+-]?[0-9]{1,64}$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := keyfunc.Int(key(s))(anyRequest)
		n, ok := new(big.Int).SetString(s, 10)
		if ok = ok && number.MatchString(s); ok != (err == nil) {
			t.Fatalf("%q: %q, %v", s, got, err)
		}
		if err == nil && got != n.String() {
			t.Fatalf("%q: %q; want %q", s, got, n)
		}
	})
}

// FuzzUUIDCanonical compares UUID with uuid.Parse, which takes more.
func FuzzUUIDCanonical(f *testing.F) {
	const id = "018f3c9a-abcd-7000-8000-00000000000f"
	for _, s := range []string{
		id, "{" + id + "}", "(" + id + ")", "urn:uuid:" + id, strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "",
	} {
		f.Add(s)
	}
	spelling := regexp.MustCompile(`(?i)^(urn:uuid:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{32}$|` +
		`^\{[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\}$`)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := keyfunc.UUID(key(s))(anyRequest)
		if (err == nil) != spelling.MatchString(s) {
			t.Fatalf("%q: %q, %v", s, got, err)
		}
		if err == nil && got != uuid.MustParse(s).String() {
			t.Fatalf("%q: %q", s, got)
		}
	})
}
