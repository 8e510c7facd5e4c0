// Package guard decides, once for all HTTP frameworks, whether a request may
// run: it derives the key, takes the lock, runs the handler, releases, or says
// how to refuse. The adapters only translate.
package guard
