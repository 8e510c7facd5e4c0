// Package redisson holds no code, only the tests in which Redisson itself and
// latchkey take the same locks of one Redis: "make test-redisson". They need a JDK
// and Maven, and are skipped without the flag that this target sets.
//
// The Java side is a program of this folder (src/main/java) with one Redisson client.
// A test starts it ([startJava]) and tells its threads what to do, a line each
// ([javaThread]). What is measured is printed; what fails a test is far from it, for
// the machine may be busy.
package redisson
