package redistest

import "testing"

// A program reads the scripts that it was built with, in whatever folder it is run.
func TestScriptsAreFoundFromElsewhere(t *testing.T) {
	t.Chdir(t.TempDir())
	if text, digest, err := ReadScript("acquire"); err != nil || text == "" || digest != Digest(text) {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}
