// Package coretest compares the playground's core, JavaScript around core.wasm,
// with the command line: in Node and in a browser it has to give the same
// bytes, the same sentences and the same spelling of numbers.
//
// It owns what drives the JavaScript (batch.mjs and its hosts) and the cases. It
// does not own what is right: the command line says, which other tests hold to
// the reference.
//
// Invariant: where Node or a browser cannot be had a test fails; go test -short
// leaves them out, on machines without a package index.
package coretest
