package conformance_test

import (
	"compress/gzip"
	"net/http"
)

// gzipWriter compresses, as middleware of that kind does: the status is kept back
// until the body begins.
type gzipWriter struct {
	http.ResponseWriter
	status int
	zip    *gzip.Writer
}

func (w *gzipWriter) WriteHeader(code int) {
	if w.status == 0 {
		w.status = code
	}
}

func (w *gzipWriter) Write(p []byte) (int, error) {
	if w.zip == nil {
		w.Header().Set("Content-Encoding", "gzip")
		if w.status != 0 {
			w.ResponseWriter.WriteHeader(w.status)
		}
		w.zip = gzip.NewWriter(w.ResponseWriter)
	}
	return w.zip.Write(p)
}

func (w *gzipWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *gzipWriter) close() {
	switch {
	case w.zip != nil:
		_ = w.zip.Close()
	case w.status != 0:
		w.ResponseWriter.WriteHeader(w.status)
	}
}
