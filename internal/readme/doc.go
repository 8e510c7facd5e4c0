// Package readme holds no code, only the test that compiles the Go of the README and
// of the pages in docs, and follows the links between them.
//
// How a block of Go is read:
//   - One that begins with a package clause is a whole file.
//   - One that is a composite literal is the value of a variable.
//   - One of declarations only stands in a file, as it is.
//   - Anything else is the body of a function that returns an error. What it declares
//     at its top level need not be used.
//
// All but whole files have their packages imported, and names that a reader fills in
// by himself (ctx, locker, db) declared: see prelude_test.go. A block of diff counts
// as the code after the change.
//
// A block whose first line names a file of another module, "// adapters/fiberlock/request.go",
// is not compiled here, but compared with that file: its lines must be there, in that order;
// "// …" stands for lines that are left out.
package readme
