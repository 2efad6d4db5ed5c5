// Package bench measures what a replay costs: wall time and peak memory of
// this project's program beside the reference, on the same traces, in one run.
//
// It owns the measuring and the table. It does not own the traces' shape
// (package gen makes them) nor the comparison of answers (package oracle
// does); a row whose answers differ is marked, because its times mean
// nothing.
//
// Two times are compared that are not the same thing: ours is the whole
// process, from start to exit, with reading the trace and writing the report;
// the reference's is the one call, without the start of its interpreter and
// its imports. What that leaves out is in the reference's favour.
//
// Invariants: the two programs take turns, run by run, so a change in the
// machine's load falls on both; every run is a fresh process; nothing is
// averaged, the table has the minimum and the median.
package bench
