// Package live measures what a mocker costs behind a Dynamo frontend: ours
// beside the reference's, each behind a frontend of its own, unchanged and of the
// same release, under the same load, in one run.
//
// It owns the processes, the load and the table. It does not own what the mockers
// answer: that is compared elsewhere, here an answer must have as many tokens as
// were asked for.
//
// A third worker answers at once and simulates nothing: what it reaches is what
// the frontend and the load generator allow on the machine.
//
// Invariants: the workers take turns, round by round, in changing order, so a
// change in the machine's load falls on all; a round's figures are kept, the table
// has medians; every request has a connection of its own and a prompt of its own.
package live
