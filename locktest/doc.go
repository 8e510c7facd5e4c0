// Package locktest gives tests a Locker without a Redis server, and trouble on
// request: a key that somebody else holds, a lock that is lost, an outage.
package locktest
