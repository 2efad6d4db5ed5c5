package runner

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/host/wasm/guest"
	"github.com/dryserve/dryserve/internal/corewasm"
)

// core is core.wasm, built once a test asks for it.
var core = sync.OnceValues(func() ([]byte, error) {
	path, err := corewasm.Build("../../..")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// compiled is the runner of it; the end of the process closes it.
var compiled = sync.OnceValues(func() (*Runner, error) {
	b, err := core()
	if err != nil {
		return nil, err
	}
	return New(context.Background(), Options{Core: b})
})

func compiledRunner(t testing.TB) *Runner {
	t.Helper()
	r, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// nativePort is a guest without WebAssembly.
type nativePort struct {
	guest  guest.Guest
	handle uint32
}

func newNativePort() *nativePort {
	p := &nativePort{}
	p.handle = p.guest.Open()
	return p
}

func (p *nativePort) exchange(_ context.Context, op frame.Op, request []byte) ([]byte, error) {
	return p.guest.Call(p.handle, op, request), nil
}

func (p *nativePort) close(context.Context) error { return nil }

// newWasmPort is a guest in WebAssembly.
func newWasmPort(t testing.TB) *instance {
	t.Helper()
	g, err := compiledRunner(t).instantiate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.close(context.Background()) })
	return g
}
