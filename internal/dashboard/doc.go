// Package dashboard holds no code, only a test that looks at docs/grafana.json and
// docs/alerts.yml as those on call would: "make dashboard".
//
// A real Prometheus scrapes examples/nethttp, a process on a redis-server of its own,
// while its locks are contended, refused, held for too long, deleted, and cut off from
// Redis. Then each query of the dashboard is run as Grafana runs it, and has to show
// what happened. A query that returns nothing is valid, so nothing else would notice.
package dashboard
