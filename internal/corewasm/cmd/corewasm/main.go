// Command corewasm builds core.wasm in the repository that it is run in.
package main

import (
	"fmt"
	"os"

	"github.com/dryserve/dryserve/internal/corewasm"
)

func main() {
	path, err := corewasm.Build(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	info, err := os.Stat(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%s: %d bytes\n", corewasm.Path, info.Size())
}
