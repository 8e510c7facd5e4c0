package main

// figure names something that is measured. The name is what the JSON has.
type figure string

// figures are what one round of one library on one row gave.
type figures map[figure]float64

const (
	cyclesPerSecond figure = "cycles_per_second"
	commandsPer     figure = "commands_per_cycle"
	redisCPU        figure = "redis_cpu_us_per_cycle"
	clientCPU       figure = "client_cpu_us_per_cycle"
	allocsPer       figure = "allocations_per_cycle"
	bytesPer        figure = "bytes_per_cycle"
	fairness        figure = "jain"
	neverServed     figure = "never_served"
	waitP50         figure = "wait_p50_ms"
	waitP99         figure = "wait_p99_ms"
	waitMax         figure = "wait_max_ms"
	errorCount      figure = "errors"
	violationCount  figure = "violations"

	handoffP50   figure = "handoff_p50_ms"
	returnP50    figure = "handoff_from_return_p50_ms"
	handoffP99   figure = "handoff_p99_ms"
	handoffCount figure = "handoffs"

	clientCPUMinute figure = "client_cpu_s_per_minute"
	redisCPUMinute  figure = "redis_cpu_s_per_minute"
	heapPerLock     figure = "heap_bytes_per_lock"
	stackPerLock    figure = "stack_bytes_per_lock"
	goroutinesPer   figure = "goroutines_per_lock"
	locksLost       figure = "lost"

	takenPerSecond figure = "taken_per_second"
	redisPerLock   figure = "redis_bytes_per_lock"
	otherP99       figure = "other_lock_p99_ms"
	otherMax       figure = "other_lock_max_ms"
	otherMaxAtEnd  figure = "other_lock_max_at_leases_end_ms"
	goneAfter      figure = "gone_after_s"

	instructionsPer figure = "redis_instructions_per_cycle"

	jobsPerSecond figure = "jobs_per_second"

	requestsPerSecond figure = "requests_per_second"
	requestP50        figure = "request_p50_ms"
	requestP99        figure = "request_p99_ms"
	roundTripP50      figure = "round_trip_p50_ms"
	requestCPU        figure = "cpu_us_per_request"
	requestAllocs     figure = "allocations_per_request"
	requestBytes      figure = "bytes_per_request"
)

// headings are the columns of the table.
var headings = map[figure]string{
	cyclesPerSecond: "cycles/s", commandsPer: "commands a cycle", redisCPU: "Redis CPU µs a cycle",
	clientCPU: "client CPU µs a cycle", allocsPer: "allocations a cycle", bytesPer: "bytes a cycle",
	fairness: "Jain", neverServed: "never served", waitP50: "wait p50 ms", waitP99: "wait p99 ms", waitMax: "wait max ms",
	errorCount: "errors", violationCount: "violations",
	handoffP50: "hand-off p50 ms", returnP50: "from the return p50 ms", handoffP99: "hand-off p99 ms", handoffCount: "hand-offs",
	clientCPUMinute: "client CPU s a minute", redisCPUMinute: "Redis CPU s a minute", heapPerLock: "heap bytes a lock",
	stackPerLock: "stack bytes a lock", goroutinesPer: "goroutines a lock", locksLost: "lost",
	takenPerSecond: "taken a second", redisPerLock: "Redis bytes a lock",
	otherP99: "another lock p99 ms", otherMax: "another lock max ms", otherMaxAtEnd: "max ms while leases end", goneAfter: "gone after s",
	instructionsPer:   "instructions a cycle",
	jobsPerSecond:     "jobs/s",
	requestsPerSecond: "requests/s", requestP50: "p50 ms", requestP99: "p99 ms", roundTripP50: "a PING p50 ms",
	requestCPU: "CPU µs a request", requestAllocs: "allocations a request", requestBytes: "bytes a request",
}
