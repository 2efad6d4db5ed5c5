package runner

import (
	"context"
	"path/filepath"
	"sync"
	"time"
)

// Warming is core.wasm while it is compiled. Until then an interpreter, which is
// ready sooner and 30 times slower, can do what is short. It may be used by several
// goroutines.
type Warming struct {
	core     []byte
	patience time.Duration
	ready    chan struct{} // closed when the next two are there
	compiled *Runner
	err      error

	mu     sync.Mutex
	interp *Runner // nil: nobody has asked, or there is something better
}

// patience is how long a compiled form that is kept takes to be found, at most.
const patience = 150 * time.Millisecond

// Warm begins to compile core.wasm, as New does, which the function calls with these
// options.
func Warm(o Options, compile func() (*Runner, error)) *Warming {
	w := &Warming{core: o.Core, patience: patience, ready: make(chan struct{})}
	if kept, _ := filepath.Glob(filepath.Join(o.CacheDir, "wazero-*", "*")); len(kept) == 0 {
		w.patience = 0
	}
	go func() {
		w.compiled, w.err = compile()
		close(w.ready)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.interp = nil // simulations in it keep it as long as they last
	}()
	return w
}

// Ready is closed when core.wasm is compiled, or cannot be.
func (w *Warming) Ready() <-chan struct{} { return w.ready }

// Compiled waits for core.wasm to be compiled.
func (w *Warming) Compiled() (*Runner, error) {
	<-w.ready
	return w.compiled, w.err
}

// Failed reports whether it is known that core.wasm cannot be compiled.
func (w *Warming) Failed() bool {
	select {
	case <-w.ready:
		return w.err != nil
	default:
		return false
	}
}

// Soon returns whatever is ready first; interim says that it is the interpreter.
func (w *Warming) Soon(ctx context.Context) (r *Runner, interim bool, err error) {
	select {
	case <-w.ready:
		return w.compiled, false, w.err
	case <-time.After(w.patience):
	}
	interp := make(chan *Runner, 1)
	go func() { interp <- w.interpreter(ctx) }()
	select {
	case <-w.ready:
	case r = <-interp:
		select {
		case <-w.ready: // it may have failed, which is to be said
			r = nil
		default:
		}
	}
	if r != nil {
		return r, true, nil
	}
	r, err = w.Compiled()
	return r, false, err
}

// interpreter makes core.wasm ready to be interpreted, once. It is nil if that
// cannot be, or need not.
func (w *Warming) interpreter(ctx context.Context) *Runner {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	default:
	}
	if w.interp == nil {
		// What is wrong with core.wasm is said by who compiles it.
		w.interp, _ = New(ctx, Options{Core: w.core, Interpret: true})
	}
	return w.interp
}
