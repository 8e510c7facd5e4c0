// Package redistest gives tests a real Redis that they can hurt: a
// redis-server process ([Start]), a cluster of them ([StartCluster]), some under
// the watch of Sentinel ([StartSentinel]), a view of every command that runs
// ([Server.Monitor]) and a proxy that loses chosen requests and replies
// ([NewProxy]).
//
// Everything it starts ends with the test. On Linux it also ends with the test
// process, however that dies.
package redistest
