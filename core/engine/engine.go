// Package engine is the readable model of a simulated engine: one scheduler
// pass at a time, one block at a time.
package engine
