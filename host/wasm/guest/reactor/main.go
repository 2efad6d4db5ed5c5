//go:build wasip1

// Command reactor is core.wasm: it exports package guest to a host, with
// numbers of 32 bits only. It is built with GOOS=wasip1 GOARCH=wasm and
// -buildmode=c-shared; a host calls _initialize first.
//
// A host asks for the mailbox's address, writes a frame there, calls, and reads
// the answer from the mailbox, whose address it has to ask for again: the
// answer may have needed a larger one.
package main

import (
	"unsafe"

	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/host/wasm/guest"
)

// most bounds the mailbox, in bytes: a frame with the longest line of a trace
// and more.
const most = 1 << 28

// The one instance's state: wasm is called from one thread at a time.
var (
	table guest.Guest
	box   = make([]byte, 64<<10)
)

// abi is the version of the exports and frames.
//
//go:wasmexport abi
func abi() uint32 { return frame.ABI }

// mailbox makes the mailbox at least so many bytes large and returns its
// address; 0: so large is none. Growing it loses what is in it.
//
//go:wasmexport mailbox
func mailbox(size uint32) uint32 {
	if size > most {
		return 0
	}
	if int(size) > len(box) {
		box = make([]byte, size)
	}
	return uint32(uintptr(unsafe.Pointer(unsafe.SliceData(box))))
}

// mailboxSize is the mailbox's size in bytes.
//
//go:wasmexport mailbox_size
func mailboxSize() uint32 { return uint32(len(box)) }

// open opens a simulation and returns its handle.
//
//go:wasmexport open
func open() uint32 { return table.Open() }

// call does an operation whose frame is the first n bytes of the mailbox, and
// returns the size of the answer, which takes its place.
//
//go:wasmexport call
func call(handle, op, n uint32) uint32 {
	answer := table.Call(handle, frame.Op(op), box[:min(int(n), len(box))])
	if len(answer) > len(box) {
		box = make([]byte, len(answer))
	}
	return uint32(copy(box, answer))
}

// status is what a simulation waits for.
//
//go:wasmexport status
func status(handle uint32) uint32 { return uint32(table.Status(handle)) }

// close drops a simulation.
//
//go:wasmexport close
func closeSim(handle uint32) { table.Close(handle) }

func main() {}
