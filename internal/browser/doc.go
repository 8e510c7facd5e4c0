// Package browser holds no code, only tests that look at the pages of this
// repository in a real browser: "make test-browser". It is a module of its own,
// so that the browser's driver reaches nobody's go.sum.
//
// A test builds and runs a program of the repository ([launch]), opens a page of
// it ([open]), and then does and sees what a user does and sees. What the page
// writes to the console as an error fails the test. With -update the pictures
// under docs are taken anew.
package browser
