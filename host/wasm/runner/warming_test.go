package runner

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/wasm/frame"
	"github.com/dryserve/dryserve/internal/gen"
)

// Until core.wasm is compiled an interpreter does the same.
func TestWarming(t *testing.T) {
	ctx := context.Background()
	b, err := core()
	if err != nil {
		t.Fatal(err)
	}
	compiled := compiledRunner(t)
	compile := make(chan struct{})
	w := Warm(Options{Core: b, CacheDir: t.TempDir()}, func() (*Runner, error) {
		<-compile
		return compiled, nil
	})
	r, interim, err := w.Soon(ctx)
	if err != nil || !interim || r == compiled || w.Failed() {
		t.Fatalf("soon there is %p, interim %v, error %v, failed %v", r, interim, err, w.Failed())
	}
	if again, _, _ := w.Soon(ctx); again != r {
		t.Error("there is a second interpreter")
	}
	text := gen.Case(3).Trace()
	run := frame.Run{Replay: config.DefaultReplay(config.VLLM)}
	run.TraceBlockSize, run.CaptureRequests, run.Concurrency = 1<<20, true, 3
	guest, err := r.instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer guest.close(ctx)
	if d := cmp.Diff(fed(t, newNativePort(), run, text), fed(t, guest, run, text), cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("-natively +interpreted:\n%s", d)
	}
	close(compile)
	<-w.Ready()
	for range 2 {
		if r, interim, err := w.Soon(ctx); r != compiled || interim || err != nil {
			t.Errorf("compiled it is %p, not %p, interim %v, error %v", r, compiled, interim, err)
		}
	}
}

// What cannot be compiled is not interpreted either, and both say so.
func TestWarmingFails(t *testing.T) {
	b, err := core()
	if err != nil {
		t.Fatal(err)
	}
	half := b[:len(b)/2]
	o := Options{Core: half, CacheDir: t.TempDir()}
	w := Warm(o, func() (*Runner, error) { return New(context.Background(), o) })
	r, interim, err := w.Soon(context.Background())
	if _, want := w.Compiled(); r != nil || interim || err == nil || err != want || !w.Failed() {
		t.Errorf("soon there is %p, interim %v, error %v (compiling says %v), failed %v", r, interim, err, want, w.Failed())
	}
}
