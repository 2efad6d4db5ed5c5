package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// First is what calls from Python cost when there is little to simulate, each
// in a fresh process. Wall is the time of the call, Again that of the same call
// once more, Import that of the import before it.
type First struct {
	Cold, Warm, Native []Sample // in WebAssembly that has to be compiled, that has been, and natively
	Reference          []Sample // empty without the reference
}

// FirstCall measures calls with a small trace, the kinds taking turns. What it
// compiles stays below dir.
func (p Programs) FirstCall(trace, dir string, repeat int) (First, error) {
	var f First
	job := Job{Trace: trace, Workers: 1}
	for i := range repeat {
		cache := filepath.Join(dir, "cache", strconv.Itoa(i))
		for _, kind := range []struct {
			to   *[]Sample
			from string
		}{{&f.Cold, "wasm"}, {&f.Warm, "wasm"}, {&f.Native, "native"}} {
			cmd := exec.Command(p.Package, "-c", packageSource, trace, "1", job.engine(), kind.from, "twice")
			cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache) // where the helper keeps what it has compiled
			s, err := call(cmd)
			if err != nil {
				return f, err
			}
			*kind.to = append(*kind.to, s)
		}
		if kept, err := filepath.Glob(filepath.Join(cache, "dryserve", "wasm", "wazero-*", "*")); err != nil || len(kept) != 1 {
			return f, fmt.Errorf("the package has left %d compiled modules in XDG_CACHE_HOME, not one: %v", len(kept), err)
		}
		if p.Python == "" {
			continue
		}
		s, err := p.reference(job)
		if err != nil {
			return f, err
		}
		f.Reference = append(f.Reference, s)
	}
	return f, nil
}

// WriteFirstCall prints the medians in seconds.
func WriteFirstCall(w io.Writer, what string, f First) {
	again := func(samples []Sample) float64 {
		of := make([]Sample, len(samples))
		for i, s := range samples {
			of[i].Wall = s.Again
		}
		return summarise(of).median
	}
	for _, kind := range []struct {
		name    string
		samples []Sample
	}{{"in wasm, to be compiled", f.Cold}, {"in wasm, compiled before", f.Warm}, {"natively", f.Native}} {
		fmt.Fprintf(w, "first call from Python (%s) %s: %.3f s, the next one %.3f s, import %.3f s\n",
			what, kind.name, summarise(kind.samples).median, again(kind.samples), imports(kind.samples))
	}
	if len(f.Reference) > 0 {
		fmt.Fprintf(w, "first call from Python (%s) of dynamo.replay: %.3f s, import %.3f s\n", what, summarise(f.Reference).median, imports(f.Reference))
	}
}
