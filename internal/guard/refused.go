package guard

import "net/http"

// RefusedWriter writes an answer that begins with the status of a refusal: whatever somebody
// else answers, it is not taken for a success by a slip.
type RefusedWriter struct {
	http.ResponseWriter
	status int
	begun  bool
}

// WriteHeader sends another status, unless the answer has begun.
func (w *RefusedWriter) WriteHeader(status int) {
	if w.begun {
		return
	}
	w.begun = status >= http.StatusOK // the answer is to follow an informational one
	w.ResponseWriter.WriteHeader(status)
}

// Write sends a part of the body.
func (w *RefusedWriter) Write(p []byte) (int, error) {
	w.Begin()
	return w.ResponseWriter.Write(p)
}

// Flush is FlushError.
func (w *RefusedWriter) Flush() { _ = w.FlushError() }

// FlushError sends what was written.
func (w *RefusedWriter) FlushError() error {
	w.Begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap is for [http.ResponseController].
func (w *RefusedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Begin sends the status of the refusal, unless the answer has begun.
func (w *RefusedWriter) Begin() {
	if !w.begun {
		w.WriteHeader(w.status)
	}
}

// Writer returns a writer for somebody else's answer, with Retry-After set.
func (r *Refusal) Writer(w http.ResponseWriter) *RefusedWriter {
	r.RetryHeader(w.Header())
	return &RefusedWriter{ResponseWriter: w, status: r.Status}
}
