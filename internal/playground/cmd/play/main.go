// Command play builds the browser playground, and serves it on this machine.
//
//	go run ./internal/playground/cmd/play          builds, then serves on a free port
//	go run ./internal/playground/cmd/play -build   builds only
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/dryserve/dryserve/internal/playground"
)

func main() {
	only := flag.Bool("build", false, "build only")
	address := flag.String("address", "127.0.0.1:0", "`host:port` to serve on; port 0: a free one")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "play: %q is given; only flags are accepted\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := play(*only, *address); err != nil {
		fmt.Fprintln(os.Stderr, "play:", err)
		os.Exit(1)
	}
}

func play(only bool, address string) error {
	fmt.Fprintln(os.Stderr, "building; a new core.wasm takes half a minute to compress")
	if err := playground.Build(".", playground.Dist, true); err != nil || only {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	server := &http.Server{Handler: playground.Handler(playground.Dist), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve(listener)
}
