package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/drive"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

// port is a guest with one simulation: a frame in, a frame out. The answer is
// valid until the next call.
type port interface {
	exchange(ctx context.Context, op frame.Op, request []byte) ([]byte, error)
	close(ctx context.Context) error
}

// Sim is one simulation in an instance of its own. It serves one goroutine at
// a time.
type Sim struct {
	ctx     context.Context // of calls that have none of their own
	guest   port
	reserve int
	fed     frame.Fed
	file    string // that begins with the next text, "": none
	size    int64
	columns frame.RecordingColumns
	tape    replay.Recording
}

// Refusal is a guest's frame of an error that is no trace's fault.
type Refusal struct {
	Fault  frame.Fault
	Config config.Fault       // with BadConfig
	Router config.RouterFault // with BadRouter
	Policy config.PolicyFault // with BadPolicy
}

// Error is the sentence.
func (r *Refusal) Error() string {
	f := r.Fault
	switch f.Code {
	case frame.BadConfig:
		return fmt.Sprintf("core.wasm refuses the configuration (code %d, field %d)", r.Config.Code, r.Config.Field)
	case frame.BadRouter:
		return fmt.Sprintf("core.wasm refuses the KV router (code %d, field %d)", r.Router.Code, r.Router.Field)
	case frame.BadPolicy:
		return fmt.Sprintf("core.wasm refuses the KV router's classes (code %d, class %d, bucket %d)", r.Policy.Code, r.Policy.Class, r.Policy.Bucket)
	case frame.BadFrame:
		return fmt.Sprintf("core.wasm cannot read the frame at byte %d", f.At)
	case frame.UnknownKey, frame.WrongType, frame.NotInRange, frame.MissingKey, frame.TwiceKey:
		what := map[frame.Error]string{
			frame.UnknownKey: "is not known", frame.WrongType: "has a value of another type", frame.NotInRange: "has a value out of range",
			frame.MissingKey: "is missing", frame.TwiceKey: "stands twice",
		}[f.Code]
		return fmt.Sprintf("core.wasm refuses the frame: the key %q %s", f.Name, what)
	}
	return fmt.Sprintf("core.wasm refuses the call (error %d, found %d)", f.Code, f.Found)
}

// Open starts a simulation of a run.
func (r *Runner) Open(ctx context.Context, run frame.Run) (*Sim, error) {
	guest, err := r.instantiate(ctx)
	if err != nil {
		return nil, err
	}
	return open(ctx, guest, run)
}

func open(ctx context.Context, guest port, run frame.Run) (*Sim, error) {
	s := &Sim{ctx: ctx, guest: guest}
	if err := s.do(frame.Configure, run.Fields(), nil); err != nil {
		_ = s.Close() // the error at hand is the one that counts
		return nil, err
	}
	return s, nil
}

// Close ends the simulation and frees its memory.
func (s *Sim) Close() error { return s.guest.close(context.WithoutCancel(s.ctx)) }

// do does an operation whose answer has exactly the given fields.
func (s *Sim) do(op frame.Op, request, answer []frame.Field) error {
	values, err := s.values(op, request)
	if err != nil {
		return err
	}
	if _, refused := values["error"]; refused {
		return refusal(values)
	}
	return said(op, assign(values, answer))
}

// values does an operation and returns the pairs of its answer.
func (s *Sim) values(op frame.Op, request []frame.Field) (map[string]any, error) {
	b, err := Encode(request)
	if err != nil {
		return nil, err
	}
	answer, err := s.guest.exchange(s.ctx, op, b)
	if err != nil {
		return nil, err
	}
	values, err := Pairs(answer)
	return values, said(op, err)
}

func said(op frame.Op, err error) error {
	if err != nil {
		err = fmt.Errorf("core.wasm has answered operation %d with a bad frame: %w", op, err)
	}
	return err
}

// refusal reads a frame with an error.
func refusal(values map[string]any) error {
	r := &Refusal{}
	if code, err := whole(values["error"]); err == nil {
		r.Fault.Code = frame.Error(code)
	}
	fields := r.Fault.Fields()
	switch r.Fault.Code {
	case frame.BadConfig:
		fields = []frame.Field{fields[0], {Name: "code", Var: (*uint8)(&r.Config.Code)}, {Name: "field", Var: (*uint8)(&r.Config.Field)}}
	case frame.BadRouter:
		fields = []frame.Field{fields[0], {Name: "code", Var: (*uint8)(&r.Router.Code)}, {Name: "field", Var: (*uint8)(&r.Router.Field)}}
	case frame.BadPolicy:
		fields = []frame.Field{fields[0], {Name: "code", Var: (*uint8)(&r.Policy.Code)}, {Name: "class", Var: &r.Policy.Class}, {Name: "bucket", Var: &r.Policy.Bucket}, {Name: "name", Var: &r.Policy.Name}}
	}
	if err := assign(values, fields); err != nil {
		return fmt.Errorf("core.wasm has refused a call with a bad frame: %w", err)
	}
	return r
}

// Reserve says how many rows more will come, about.
func (s *Sim) Reserve(rows int) { s.reserve = min(max(rows, 0), frame.MaxReserve) }

// File begins the next file, see tracefile.Into.
func (s *Sim) File(path string, size int64) { s.file, s.size = path, size }

// Feed takes the next part of the trace, see tracefile.Into.
func (s *Sim) Feed(text []byte, end, more bool) (tracefile.Counts, intake.Finding, error) {
	in := frame.Feeding{Text: text, End: end, More: more, Reserve: s.reserve, File: s.file, Size: s.size}
	s.reserve, s.file = 0, ""
	values, err := s.values(frame.Feed, in.Fields())
	if err != nil {
		return tracefile.Counts{}, intake.Finding{}, err
	}
	if _, refused := values["error"]; refused {
		t, err := traceFault(values)
		return tracefile.Counts{Lines: t.Lines, Rows: t.Rows, Failed: t.Failed}, t.Finding, err
	}
	fields := s.fed.Fields()
	if end && !more {
		fields = s.fed.AllFields()
	}
	err = assign(values, fields)
	return tracefile.Counts{Lines: s.fed.Lines, Rows: s.fed.Rows, Failed: s.fed.Failed}, intake.Finding{}, said(frame.Feed, err)
}

// traceFault reads what is wrong with a workload out of a refusal, or returns
// another refusal.
func traceFault(values map[string]any) (t frame.TraceFault, err error) {
	n, _ := whole(values["error"])
	if t.Kind = frame.KindOf(frame.Error(n)); t.Kind == intake.Nothing {
		return t, refusal(values)
	}
	t.InputLength = -1
	err = assign(values, t.Fields())
	t.Row.Line = t.Line
	return t, said(frame.Feed, err)
}

// Synthesize makes a workload instead of feeding one. The spec has passed its
// check.
func (s *Sim) Synthesize(spec synth.Spec) (workload.Fault, error) {
	values, err := s.values(frame.Synthesize, frame.SpecFields(&spec))
	if err != nil {
		return workload.Fault{}, err
	}
	if _, refused := values["error"]; refused {
		t, err := traceFault(values)
		return t.Row, err
	}
	return workload.Fault{}, said(frame.Synthesize, assign(values, s.fed.AllFields()))
}

// NamesSessions reports whether records name their sessions.
func (s *Sim) NamesSessions() bool { return s.fed.Named }

// Step simulates about so many events. In status NeedTiming the answer to the
// question has to be given, see Answer.
func (s *Sim) Step(events int) (frame.Progressed, error) {
	return s.progressed(frame.Step, (&frame.Stepping{Events: events}).Fields(frame.Running))
}

// Answer is Step with the answer in ms to the question that Step has returned.
func (s *Sim) Answer(ms float64, events int) (frame.Progressed, error) {
	return s.progressed(frame.Step, (&frame.Stepping{Events: events, AnswerMs: ms}).Fields(frame.NeedTiming))
}

// Progress says how far the run is.
func (s *Sim) Progress() (frame.Progressed, error) { return s.progressed(frame.Progress, nil) }

func (s *Sim) progressed(op frame.Op, request []frame.Field) (frame.Progressed, error) {
	var p frame.Progressed
	values, err := s.values(op, request)
	if err != nil {
		return p, err
	}
	if _, refused := values["error"]; refused {
		return p, refusal(values)
	}
	fields := p.Fields()
	if _, ok := values[frame.RouterKey]; ok {
		fields = p.RouterFields()
	} else if _, ok := values["in_flight"]; ok {
		fields = p.FaultFields()
	} else if _, ok := values["ask_kind"]; ok {
		fields = p.QueryFields()
	}
	return p, said(op, assign(values, fields))
}

// Scale is Step with the policy's answer, in status NeedScaling.
func (s *Sim) Scale(d replay.Decision, events int) (frame.Progressed, error) {
	return s.progressed(frame.Step, (&frame.Stepping{Events: events, Decision: d}).Fields(frame.NeedScaling))
}

// Run steps to the end of the run, or of ctx; then the error is the context's.
// Progress is told after each step that does not end with a question. A Record
// is for a run that Configure was told to record, Samples for one that it was
// told to sample.
func (s *Sim) Run(ctx context.Context, o drive.Options) (frame.Progressed, error) {
	var pace drive.Pace
	start := time.Now()
	p, err := s.Step(pace.Events())
	for err == nil {
		pace.Took(time.Since(start))
		if err := s.tell(o); err != nil {
			return p, err
		}
		asked := p.Status == frame.NeedTiming || p.Status == frame.NeedScaling
		if o.Progress != nil && !asked {
			o.Progress(p.Done, p.Total)
		}
		if p.Status != frame.Running && !asked {
			return p, nil
		}
		if err := ctx.Err(); err != nil {
			return p, err
		}
		p, start, err = s.goOn(p, o, pace.Events())
	}
	return p, err
}

// goOn answers a question, if there is one, and steps. It says when it had the
// answer.
func (s *Sim) goOn(p frame.Progressed, o drive.Options, events int) (frame.Progressed, time.Time, error) {
	switch p.Status {
	case frame.NeedTiming:
		ms, err := o.Ask(p.Query)
		if err != nil {
			return p, time.Time{}, err
		}
		start := time.Now()
		p, err = s.Answer(ms, events)
		return p, start, err
	case frame.NeedScaling:
		d, err := s.decide(o)
		if err != nil {
			return p, time.Time{}, err
		}
		start := time.Now()
		p, err = s.Scale(d, events)
		return p, start, err
	}
	start := time.Now()
	p, err := s.Step(events)
	return p, start, err
}

// decide asks the policy.
func (s *Sim) decide(o drive.Options) (replay.Decision, error) {
	var c frame.TickColumns
	if err := s.do(frame.Tick, nil, c.Fields()); err != nil {
		return replay.Decision{}, err
	}
	t, ok := c.Tick()
	if !ok {
		return replay.Decision{}, errColumns
	}
	return o.Decide(t)
}

// tell hands on what was recorded and sampled.
func (s *Sim) tell(o drive.Options) error {
	if o.Record != nil {
		if err := s.takeRecording(o.Record); err != nil {
			return err
		}
	}
	if o.Samples == nil {
		return nil
	}
	var c frame.SampleColumns
	if err := s.do(frame.TakeSamples, nil, c.Fields()); err != nil {
		return err
	}
	list, ok := c.Samples()
	if !ok {
		return errColumns
	}
	if len(list) == 0 {
		return nil
	}
	return o.Samples(list)
}

// Summary returns the numbers of the report.
func (s *Sim) Summary() (replay.Summary, error) {
	var summary replay.Summary
	values, err := s.values(frame.Summarize, nil)
	if err != nil {
		return summary, err
	}
	if _, refused := values["error"]; refused {
		return summary, refusal(values)
	}
	if _, ok := values[frame.SharedHostKey]; ok {
		summary.SharedHost = &replay.HostPool{}
	}
	if _, ok := values[frame.AgentsKey]; ok {
		summary.Agents = &replay.AgentsSummary{}
	}
	if _, ok := values[frame.DiskKey]; ok {
		summary.Disk = &offload.DiskStats{}
	}
	return summary, said(frame.Summarize, assign(values, frame.SummaryFields(&summary)))
}
