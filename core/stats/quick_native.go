//go:build !wasm

package stats

// speculate chooses addQuick over addPlain; both give the same bits. It pays
// where several operations run at once.
const speculate = true
