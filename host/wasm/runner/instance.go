package runner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/dryserve/dryserve/host/wasm/frame"
)

// instance is one guest with one simulation.
type instance struct {
	module api.Module
	said   lastWords
	dead   error // why the guest has stopped

	mailbox, call api.Function
	handle        uint64
}

// lastWords keeps the beginning of what a guest writes before it stops.
type lastWords struct{ bytes.Buffer }

func (w *lastWords) Write(p []byte) (int, error) {
	const most = 4 << 10
	w.Buffer.Write(p[:min(len(p), most-min(w.Len(), most))])
	return len(p), nil
}

// gcPercent trades memory for time: the guest's heap is mostly what lives as
// long as the run.
const gcPercent = "400"

// instantiate starts a guest and opens its one simulation.
func (r *Runner) instantiate(ctx context.Context) (*instance, error) {
	g := &instance{}
	// The guest's scheduler needs clocks that advance.
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithSysWalltime().WithSysNanotime().WithSysNanosleep().WithEnv("GOGC", r.gcPercent).WithStderr(&g.said)
	module, err := r.runtime.InstantiateModule(ctx, r.module, config)
	if err != nil {
		return nil, fmt.Errorf("core.wasm cannot be started: %w", g.reason(err))
	}
	g.module = module
	for name, f := range map[string]*api.Function{"mailbox": &g.mailbox, "call": &g.call} {
		if *f = module.ExportedFunction(name); *f == nil {
			return nil, g.drop(ctx, fmt.Errorf("core.wasm has no function %s", name))
		}
	}
	abi, open := module.ExportedFunction("abi"), module.ExportedFunction("open")
	if abi == nil || open == nil {
		return nil, g.drop(ctx, errors.New("core.wasm has no function abi or open"))
	}
	switch version, err := g.ask(ctx, abi); {
	case err != nil:
		return nil, g.drop(ctx, err)
	case version != frame.ABI:
		return nil, g.drop(ctx, fmt.Errorf("core.wasm speaks version %d of the frames, this program version %d", version, frame.ABI))
	}
	if g.handle, err = g.ask(ctx, open); err != nil {
		return nil, g.drop(ctx, err)
	}
	return g, nil
}

func (g *instance) close(ctx context.Context) error { return g.module.Close(ctx) }

func (g *instance) drop(ctx context.Context, err error) error {
	_ = g.module.Close(ctx) // the error at hand is the one that counts
	return err
}

// ask calls a function of the guest. After a trap the guest is dead.
func (g *instance) ask(ctx context.Context, f api.Function, args ...uint64) (uint64, error) {
	if g.dead != nil {
		return 0, g.dead
	}
	var stack [3]uint64
	copy(stack[:], args)
	if err := f.CallWithStack(ctx, stack[:]); err != nil {
		g.dead = fmt.Errorf("the simulation inside core.wasm has stopped: %w", g.reason(err))
		return 0, g.dead
	}
	return stack[0] & 0xFFFFFFFF, nil
}

// reason puts what is known of a trap into one line.
func (g *instance) reason(err error) error {
	var exit *sys.ExitError
	line, _, _ := strings.Cut(strings.TrimSpace(g.said.String()), "\n")
	switch {
	case line != "":
		return errors.New(line)
	case errors.As(err, &exit):
		return fmt.Errorf("exit status %d", exit.ExitCode())
	}
	line, _, _ = strings.Cut(err.Error(), "\n")
	return errors.New(line)
}

// exchange does one operation: a frame in, a frame out. The answer is a view
// of the guest's memory, valid until the next call.
func (g *instance) exchange(ctx context.Context, op frame.Op, request []byte) ([]byte, error) {
	address, err := g.ask(ctx, g.mailbox, uint64(len(request)))
	if err != nil {
		return nil, err
	}
	if address == 0 || !g.module.Memory().Write(uint32(address), request) {
		return nil, fmt.Errorf("a frame of %d bytes does not fit into core.wasm", len(request))
	}
	n, err := g.ask(ctx, g.call, g.handle, uint64(op), uint64(len(request)))
	if err != nil {
		return nil, err
	}
	if address, err = g.ask(ctx, g.mailbox, 0); err != nil {
		return nil, err
	}
	answer, ok := g.module.Memory().Read(uint32(address), uint32(n))
	if !ok {
		g.dead = fmt.Errorf("core.wasm has answered with %d bytes beyond its memory", n)
		return nil, g.dead
	}
	return answer, nil
}
