// Code generated from ginlock/refusal.go by internal/architecture. DO NOT EDIT.

package echo5lock

import (
	"time"

	"github.com/labstack/echo/v5"

	"github.com/latchkey-go/latchkey/core"
	"github.com/latchkey-go/latchkey/internal/guard"
)

var onRefused guard.OnRefused[onRefusedFunc]

// SetOnRefused has f answer the refusals of all guards of this package that have no
// OnRefused of their own: the error format of the whole program, as
// [core.SetDefault] sets the Locker. It is looked up for each request. nil removes it. It is
// safe for concurrent use. See [Config] for what f has to do.
func SetOnRefused(f func(c *echo.Context, err error) error) { onRefused.Set(f) }

// OnRefused is Config.OnRefused as an option of the By functions.
func OnRefused(f func(c *echo.Context, err error) error) core.Option { return onRefused.Option(f) }

// Strict is Config.Strict as an option of [ByParam].
func Strict() core.Option { return guard.Strict() }

// FailOpen is Config.FailOpen as an option of the By functions.
func FailOpen() core.Option { return guard.FailOpen() }

// Status is Config.Status as an option of the By functions, which panic when code is no error status.
func Status(code int) core.Option { return guard.Status(code) }

// Locker is Config.Locker as an option of the By functions, which panic when l is nil. One for all of them is given to [With].
func Locker(l *core.Locker) core.Option { return guard.Locker(l) }

// BufferBody is Config.BufferBody as an option of the By functions.
func BufferBody(n int64) core.Option { return guard.BufferBody(n) }

// SafeMethods is for Config.Shared: the requests by GET, HEAD, OPTIONS and TRACE, which only
// read (https://www.rfc-editor.org/rfc/rfc9110#section-9.2.1). Put middleware that lets a client
// override the method outside of the guard.
func SafeMethods(c *echo.Context) bool { return guard.IsSafe(c.Request()) }

// StatusOf returns the HTTP status of a refusal, from the error that OnRefused gets or that a call
// of core or of a keyfunc has returned, and after how long trying again makes sense: in whole
// seconds, 0 where it does not. 400 and 413: there is no key; 409: the lock is busy,
// and 429: there is no permit, or what Config.Status says; 409 and 422 of [Idempotent]; 499: the
// client has left; 500: the program is misconfigured, or err is of another kind; 503: Redis does
// not answer, the Locker closes or the lock was lost.
func StatusOf(err error) (status int, retryAfter time.Duration) { return guard.StatusOf(err) }

// ReasonOf returns why a request was refused, from an error as StatusOf takes it: a word for
// the client's program and a text for people, which the problem body has as its code and detail. Both
// are fixed, and say nothing about keys, owners or Redis.
//
//	busy             409  another request for the same resource is being processed
//	done             409  one was processed just now: the dedup window
//	missing          400  a required part of the request is missing
//	repeated         400  a part is given more than once
//	letter_case      400  the name of a part is in another letter case
//	path             400  the path has escapes, or empty or dot segments
//	not_json         400  the body is not declared as JSON
//	ambiguous        400  a part can be read in two ways
//	malformed        400  a part is malformed
//	too_long         400  a part is too long
//	too_large        413  the body is too large
//	too_many         429  as many requests for the same resource are being processed as may be
//	reused           422  the Idempotency-Key was sent with another request
//	not_replayable   409  the request was processed, and its answer cannot be sent again
//	outcome_unknown  409  the request may have been processed: its outcome is unknown
//	gone             499  the client has left
//	internal         500  the program is misconfigured, or err is of another kind
//	unavailable      503  Redis does not answer or is overloaded, the Locker closes or the lock was lost
func ReasonOf(err error) (code, text string) { return guard.ReasonOf(err) }

// PartOf returns the name of the part of a request that is missing or wrong, from an error as StatusOf takes it, where
// it answers 400 or 413. The problem body has it as its member "part". It is the word by which the program asks for the part: of
// a parameter, header field or cookie the name, of JSON the path, of keyfunc.Value the key, of a function that is written by
// hand that of a keyfunc.Named around it; "body" or "path" if all of that is wrong. No client chooses it, and it is no
// value. It is empty when there is no such word: nothing is to be said but what ReasonOf returns.
func PartOf(err error) string { return guard.PartOf(err) }
