// Package wasm carries core.wasm, the core compiled for any host that runs
// WebAssembly. It owns the bytes; host/wasm/guest is what they were built from,
// host/wasm/runner runs them.
package wasm

import (
	"embed"
	"errors"
)

//go:embed binary
var binary embed.FS

// ErrNoCore says that the program was built without core.wasm.
var ErrNoCore = errors.New("this program was built without core.wasm; one built with make carries it")

// Core returns core.wasm. It must not be changed.
func Core() ([]byte, error) {
	core, err := binary.ReadFile("binary/core.wasm")
	if err != nil {
		return nil, ErrNoCore
	}
	return core, nil
}
