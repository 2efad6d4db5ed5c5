// Package oracle compares this project's replay with the reference on random
// cases. The reference runs as a black box in a Python process of its own;
// what it answers is compared bit for bit, a difference is shrunk to a small
// case and kept with the recorded answer, so `go test` repeats it without the
// reference.
//
// It owns the asking, the comparing, the shrinking and the recorded cases. It
// does not own the inputs (package gen) and knows no rule of the simulation,
// so it cannot excuse a difference: the only tolerances are the ones named in
// compare.go.
//
// Invariants: a case counts as compared only if both sides gave an answer; a
// side that crashes or does not end is never equal to one that answers.
package oracle
