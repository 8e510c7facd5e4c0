// Package ratelimit limits how often clients call a route, by redis_rate. A rate needs no lock: see docs/forms.md.
package ratelimit

import (
	"net/http"
	"strconv"

	"github.com/go-redis/redis_rate/v10"
)

// PerMinute lets n requests a minute of each user pass. The others get 429.
func PerMinute(limiter *redis_rate.Limiter, n int, userOf func(*http.Request) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, err := limiter.Allow(r.Context(), "pay:"+userOf(r), redis_rate.PerMinute(n))
			switch {
			case err != nil:
				http.Error(w, "try again soon", http.StatusServiceUnavailable)
			case got.Allowed == 0:
				w.Header().Set("Retry-After", strconv.Itoa(1+int(got.RetryAfter.Seconds())))
				http.Error(w, "too many requests", http.StatusTooManyRequests)
			default:
				next.ServeHTTP(w, r)
			}
		})
	}
}
