// Package locktest gives tests a Locker without a Redis server.
package locktest
