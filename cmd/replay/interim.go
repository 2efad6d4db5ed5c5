package main

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// Bounds of a run that is begun in an interpreter while core.wasm is compiled: in
// most cases it is over before.
const (
	shortTraceBytes = 64 << 10
	shortRequests   = 300
)

// choose finds who runs core.wasm. A short run does not wait for the compiler.
func (s *sandboxed) choose(ctx context.Context, o *options, around *surroundings) (err error) {
	if around.warming == nil {
		s.runner, err = around.runner(o)
		return err
	}
	short := o.short(around)
	w, err := around.warming(o, !short)
	switch {
	case err != nil:
		return err
	case !short:
		s.runner, err = w.Compiled()
		return err
	}
	var interim bool
	if s.runner, interim, err = w.Soon(ctx); interim {
		s.better = w
	}
	return err
}

// short reports whether a run is short, and can be begun again: nobody has been
// asked, and nothing shown, by what was done so far.
func (o *options) short(around *surroundings) bool {
	if around.timing != nil || around.policy != nil || o.sampled() || o.draws() || o.given("ticks-json") {
		return false
	}
	if len(o.traces) == 0 {
		return o.synth.requests*max(o.synth.turns, 1) <= shortRequests
	}
	total := int64(0)
	for _, path := range o.traces {
		if path == "-" {
			from, ok := around.stdin.(io.Seeker)
			if !ok {
				return false
			}
			size, err := from.Seek(0, io.SeekEnd)
			if _, back := from.Seek(0, io.SeekStart); err != nil || back != nil {
				return false
			}
			total += size
			continue
		}
		about, err := os.Stat(path)
		if err != nil || !about.Mode().IsRegular() {
			return false
		}
		total += about.Size()
	}
	return total <= shortTraceBytes
}

// errBetter ends a run in an interpreter.
var errBetter = errors.New("core.wasm is compiled")

// run runs to the end; what an interpreter has not ended when core.wasm is compiled
// is begun again there.
func (s *sandboxed) run(ctx context.Context, host drive.Options) (frame.Progressed, error) {
	if s.better == nil {
		return s.sim.Run(ctx, host)
	}
	interim, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		select {
		case <-s.better.Ready():
			end(errBetter)
		case <-interim.Done():
		}
	}()
	quiet := host
	quiet.Progress = nil // it may have to begin again
	p, err := s.sim.Run(interim, quiet)
	if err == nil || context.Cause(interim) != errBetter || ctx.Err() != nil {
		return p, err
	}
	compiled, err := s.better.Compiled()
	if err != nil {
		return p, err
	}
	if err := s.sim.Close(); err != nil {
		return p, err
	}
	s.sim, s.runner, s.better = nil, compiled, nil
	if err := s.begin(); err != nil {
		return p, err
	}
	return s.sim.Run(ctx, host)
}
