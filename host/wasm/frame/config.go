package frame

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
)

// Run is what Configure describes: a run, and which of the core's twins is to
// simulate it.
type Run struct {
	config.Replay
	Plain    bool // see replay.Options
	Eventful bool
	Record   bool // see replay.Options; TakeRecording has the recording

	// How the trace is read, see intake.Options.
	Format            intake.Format
	WantBlockSize     int
	SharedPrefixRatio float64
	PrefixGroups      uint32
	ExecutionModel    string
	NestedBasis       weka.Basis
}

// Intake is how the trace is read.
func (r *Run) Intake() intake.Options {
	return intake.Options{
		Format: r.Format, TraceBlockSize: r.TraceBlockSize, WantBlockSize: r.WantBlockSize, Concurrency: r.Concurrency > 0, ArrivalSpeedup: r.ArrivalSpeedup,
		SharedPrefixRatio: r.SharedPrefixRatio, PrefixGroups: r.PrefixGroups, Lanes: r.Lanes, Model: r.ExecutionModel != "",
		NestedBasis: r.NestedBasis, MaxLine: trace.MaxLine,
	}
}

// checkIntake refuses what no reader of traces takes.
func (r *Run) checkIntake() Fault {
	name := ""
	switch {
	case r.Format > intake.BurstGPT:
		name = "format"
	case r.WantBlockSize < 0:
		name = "want_block_size"
	case !(r.SharedPrefixRatio >= 0 && r.SharedPrefixRatio <= 1):
		name = "shared_prefix_ratio"
	case r.NestedBasis > weka.Relative:
		name = "nested_basis"
	default:
		return Fault{}
	}
	return Fault{Code: NotInRange, Name: name}
}

// BackendKey and PrefillBackendKey are the keys that decide what absent ones of
// Configure mean.
const (
	BackendKey        = "engine.backend"
	PrefillBackendKey = "prefill.engine.backend"
)

// Fields lists a run's fields with the names that frames have for them: those
// of core/config in snake case, with the names of the structs before them. A
// new field of core/config gets a line here and one in docs/frames.md; a test
// tells. Tables, a router and a pool that r does not have are left out.
func (r *Run) Fields() []Field {
	fields := r.plainFields()
	if s := r.Scaling.Script; len(s) > 0 {
		fields = append(fields, scriptOf(s).fields()...)
	}
	if r.Prefill.Workers != 0 {
		fields = append(fields, poolFields(&r.Prefill)...)
	}
	if g := r.Routing.LoadGrid; g != nil {
		fields = append(fields, below("routing.load_grid.", gridFields(g))...)
	}
	if x := r.Routing.Router; x != nil {
		fields = append(fields, routerFields(x)...)
		if x.Policy != nil {
			fields = append(fields, columnsOf(x.Policy).fields()...)
		}
	}
	return fields
}

// plainFields are those that every run has.
func (r *Run) plainFields() []Field {
	fields := append(engineFields("engine.", &r.Engine), scalingFields(&r.Replay)...)
	return append(fields,
		Field{Name: "num_workers", Var: &r.NumWorkers},
		Field{Name: "trace_block_size", Var: &r.TraceBlockSize},
		Field{Name: "concurrency", Var: &r.Concurrency},
		Field{Name: "lanes", Var: &r.Lanes},
		Field{Name: "arrival_speedup", Var: &r.ArrivalSpeedup},
		Field{Name: "max_sim_time_ms", Var: &r.MaxSimTimeMs},
		Field{Name: "sla.ttft_ms", Var: &r.SLA.TTFTMs},
		Field{Name: "sla.itl_ms", Var: &r.SLA.ITLMs},
		Field{Name: "sla.e2e_ms", Var: &r.SLA.E2EMs},
		Field{Name: "parity", Var: &r.Parity},
		Field{Name: "capture_requests", Var: &r.CaptureRequests},
		Field{Name: "sharing", Var: (*uint8)(&r.Sharing)},
		Field{Name: "prefill_per_node", Var: &r.PrefillPerNode},
		Field{Name: "routing.mode", Var: (*uint8)(&r.Routing.Mode)},
		Field{Name: "routing.seed", Var: &r.Routing.Seed},
		Field{Name: "routing.event_lag_ms", Var: &r.Routing.EventLagMs},
		Field{Name: "routing.tracking.block", Var: &r.Routing.Tracking.Block},
		Field{Name: "routing.tracking.chain", Var: &r.Routing.Tracking.Chain},
		Field{Name: "routing.ask_load", Var: &r.Routing.AskLoad},
		Field{Name: "plain", Var: &r.Plain},
		Field{Name: "eventful", Var: &r.Eventful},
		Field{Name: "record", Var: &r.Record},
		Field{Name: "format", Var: (*uint8)(&r.Format)},
		Field{Name: "want_block_size", Var: &r.WantBlockSize},
		Field{Name: "shared_prefix_ratio", Var: &r.SharedPrefixRatio},
		Field{Name: "prefix_groups", Var: &r.PrefixGroups},
		Field{Name: "execution_model", Var: &r.ExecutionModel},
		Field{Name: "nested_basis", Var: (*uint8)(&r.NestedBasis)})
}

// poolFields are those of the pool that computes prompts.
func poolFields(p *config.Pool) []Field {
	return append(engineFields("prefill.engine.", &p.Engine), Field{Name: "prefill.workers", Var: &p.Workers})
}

// DecodeRun reads a frame of Configure. What it leaves out is as in
// config.DefaultReplay of its backend, as in config.Defaults of the backend of
// the pool for prompts, and as in config.DefaultRouter. The run is not checked.
func DecodeRun(b []byte) (*Run, Fault) {
	backend, pool, f := peekBackends(b)
	if f.Code != OK {
		return nil, f
	}
	r := &Run{Replay: config.DefaultReplay(backend)}
	r.Prefill.Engine = config.Defaults(pool)
	r.Prefill.Engine.Role = config.Prefill
	router, grid, policy, script := config.DefaultRouter(), config.GridTable{}, policyColumns{}, scriptColumns{}
	emptyTables(&r.Engine.Timing)
	emptyTables(&r.Prefill.Engine.Timing)
	fields := append(r.plainFields(), poolFields(&r.Prefill)...)
	fields = append(fields, script.fields()...)
	fields = append(fields, below("routing.load_grid.", gridFields(&grid))...)
	fields = append(fields, routerFields(&router)...)
	if f := Decode(b, append(fields, policy.fields()...)); f.Code != OK {
		return nil, f
	}
	if f := r.checkIntake(); f.Code != OK {
		return nil, f
	}
	if r.Scaling.Script, f = script.script(); f.Code != OK {
		return nil, f
	}
	trimTables(&r.Engine.Timing)
	trimTables(&r.Prefill.Engine.Timing)
	if r.Prefill.Workers == 0 {
		r.Prefill = config.Pool{}
	}
	if r.Routing.Mode != config.KVRouter {
		return r, Fault{}
	}
	if router.TrackingHash == config.KeyedXXH3 { // its seeds have come
		router.TrackingKeyFile, router.TrackingKeyID = seedsKey, seedsKey
	}
	r.Routing.LoadGrid, r.Routing.Router = trimGrid(&grid), &router
	router.Policy, f = policy.policy()
	return r, f
}

// peekBackends finds the backends before anything else is read: that of the
// engine, and that of the pool for prompts, which is the same if it has none.
func peekBackends(b []byte) (engine, prefill config.Backend, f Fault) {
	if f := Check(b); f.Code != OK {
		return 0, 0, f
	}
	r := reader{b: b}
	own, other := uint8(config.VLLM), uint8(0)
	given := false
	for range r.next().whole {
		key := r.next().bytes
		v := r.next()
		switch string(key) {
		case BackendKey:
			if code := set(&own, v); code != OK {
				return 0, 0, Fault{Code: code, Name: BackendKey}
			}
		case PrefillBackendKey:
			given = true
			if code := set(&other, v); code != OK {
				return 0, 0, Fault{Code: code, Name: PrefillBackendKey}
			}
		}
	}
	if !given {
		other = own
	}
	return config.Backend(own), config.Backend(other), Fault{}
}
