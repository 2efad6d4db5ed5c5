// Package runner runs core.wasm on wazero: one instance for every simulation,
// so that simulations are independent and may run at the same time.
//
// It owns compilation and its cache, memory, the host's side of the frames,
// and the sentence for a guest that has stopped. It does not own what a
// simulation does (host/wasm/guest), files, or wording of what is wrong with a
// trace (host/native/tracefile).
//
// Invariants: a guest sees no file, no argument and no environment but the
// setting of its garbage collector; a step ends by itself, so a run is stopped
// between two of them; after a guest has stopped every call says why.
package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Options say what is run and where its compiled form is kept.
type Options struct {
	Core     []byte // core.wasm
	CacheDir string // made if it is not there; "": no cache
	MemoryMB int    // of each simulation at most; 0: 4096, which is all that there can be
	Workers  int    // that compile at the same time; 0: one on each processor
	// Interpret does without compiling: ready in a fifth of the time, and 30 times
	// slower then. There is no cache for it.
	Interpret bool
}

// Runner is core.wasm compiled, ready for simulations. It may be used by
// several goroutines.
type Runner struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	cache   wazero.CompilationCache // nil: none

	gcPercent string // of the guests' collectors
}

// ErrCache is an error of the cache's directory.
var ErrCache = errors.New("the cache for compiled WebAssembly cannot be used")

// New compiles core.wasm or takes it from the cache. A cache that is damaged
// is emptied.
func New(ctx context.Context, o Options) (*Runner, error) {
	if o.CacheDir == "" || o.Interpret {
		return compile(ctx, o, nil)
	}
	r, err := cached(ctx, o)
	if err == nil || errors.Is(err, ErrCache) {
		return r, err
	}
	// The cache or core.wasm is at fault; without the cache one can tell.
	r, err = compile(ctx, o, nil)
	if err != nil {
		return nil, err
	}
	if err := o.clear(); err != nil {
		return nil, r.fail(ctx, err)
	}
	if fresh, err := cached(ctx, o); err == nil {
		return fresh, r.Close(ctx)
	}
	return r, nil
}

// clear removes what wazero keeps in the cache's directory.
func (o Options) clear() error {
	kept, err := filepath.Glob(filepath.Join(o.CacheDir, "wazero-*"))
	for _, dir := range kept {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return fmt.Errorf("%w: it is damaged and cannot be emptied: %w", ErrCache, err)
	}
	return nil
}

func cached(ctx context.Context, o Options) (*Runner, error) {
	// Compiled code is run as it is: nobody else may write it.
	if err := os.MkdirAll(o.CacheDir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCache, err)
	}
	cache, err := wazero.NewCompilationCacheWithDir(o.CacheDir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCache, err)
	}
	return compile(ctx, o, cache)
}

// compile makes a runner that owns the cache.
func compile(ctx context.Context, o Options, cache wazero.CompilationCache) (*Runner, error) {
	config := wazero.NewRuntimeConfig()
	if o.Interpret {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	if cache != nil {
		config = config.WithCompilationCache(cache)
	}
	if o.MemoryMB > 0 {
		const pagesPerMB = 16
		config = config.WithMemoryLimitPages(uint32(min(o.MemoryMB, 4096) * pagesPerMB))
	}
	r := &Runner{runtime: wazero.NewRuntimeWithConfig(ctx, config), cache: cache, gcPercent: gcPercent}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r.runtime); err != nil {
		return nil, r.fail(ctx, err)
	}
	var err error
	workers := o.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	ctx = experimental.WithCompilationWorkers(ctx, workers)
	if r.module, err = r.runtime.CompileModule(ctx, o.Core); err != nil {
		return nil, r.fail(ctx, fmt.Errorf("core.wasm cannot be compiled: %w", err))
	}
	return r, nil
}

func (r *Runner) fail(ctx context.Context, err error) error {
	_ = r.Close(ctx) // the error at hand is the one that counts
	return err
}

// Close ends the runner and every simulation of it.
func (r *Runner) Close(ctx context.Context) error {
	err := r.runtime.Close(ctx)
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(ctx))
	}
	return err
}
