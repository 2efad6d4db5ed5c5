package guest

import (
	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/router"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/wasm/frame"
)

func (g *Guest) feed(s *sim, request []byte) []byte {
	in := frame.Feeding{Size: -1}
	if !g.place(s, frame.Idle) || !g.read(request, in.Fields()...) {
		return g.answer
	}
	switch {
	case in.Reserve < 0 || in.Reserve > frame.MaxReserve:
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: "reserve"})
	case in.More && !in.End:
		return g.refuse(frame.Fault{Code: frame.MissingKey, Name: "end"})
	case in.File == "" && s.read.Ended():
		return g.refuse(frame.Fault{Code: frame.MissingKey, Name: frame.FileKey})
	case in.File != "" && !s.read.Ended() && !s.read.Fresh():
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: frame.FileKey})
	}
	if in.Reserve > 0 {
		s.read.Reserve(in.Reserve)
	}
	if in.File != "" {
		s.read.File(in.File, in.Size)
	}
	found := s.read.Feed(in.Text, in.End)
	if found.OK() && in.End && !in.More {
		s.load, found = s.read.Finish()
	}
	if !found.OK() {
		s.status = frame.Failed
		return g.finding(&found, s.read)
	}
	fed := frame.Fed{Lines: s.read.Lines(), Rows: s.read.Rows(), Failed: s.read.Failed(), Format: s.read.Format()}
	if s.load == nil {
		return g.say(fed.Fields()...)
	}
	return g.whole(s, &fed)
}

// whole answers with what the workload has, and is ready to run it.
func (g *Guest) whole(s *sim, fed *frame.Fed) []byte {
	s.read, s.status = nil, frame.Running
	w := s.load
	fed.Turns, fed.Sessions, fed.BlockSizes = len(w.Turns), len(w.Sessions), w.BlockSizes
	fed.Named, fed.Drawn, fed.Unlined, fed.Graph = w.NamesSessions(s.run.Concurrency > 0), w.Drawn, w.Unlined, w.Graph != nil
	return g.say(fed.AllFields()...)
}

func (g *Guest) synthesize(s *sim, request []byte) []byte {
	spec := synth.Spec{ArrivalSeed: synth.DefaultArrivalSeed, BlockSize: s.run.Engine.BlockSize}
	if !g.place(s, frame.Idle) || !g.read(request, frame.SpecFields(&spec)...) {
		return g.answer
	}
	switch {
	case !s.read.Fresh():
		return g.refuse(frame.Fault{Code: frame.WrongState, Found: int64(s.status)})
	case spec.Arrival > synth.Constant:
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: "arrival"})
	case spec.BlockSize < 1 || spec.BlockSize > config.MaxBlockSize:
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: "block_size"})
	}
	if field := spec.Check(); field != synth.None {
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: frame.SpecKey(field)})
	}
	cfg := &s.run.Replay
	w, f := synth.Build(spec, workload.Options{Concurrency: cfg.Concurrency > 0, ArrivalSpeedup: cfg.ArrivalSpeedup})
	if f.Code != workload.OK {
		s.status = frame.Failed
		return g.finding(&intake.Finding{Kind: intake.ByRow, Row: f, Line: f.Line, InputLength: -1}, s.read)
	}
	s.load = w
	return g.whole(s, &frame.Fed{})
}

// finding answers with what is wrong with the trace.
func (g *Guest) finding(found *intake.Finding, read *intake.Feeder) []byte {
	t := frame.TraceFault{Finding: *found, Lines: read.Lines(), Rows: read.Rows(), Failed: read.Failed(), Format: read.Format()}
	return g.say(t.Fields()...)
}

func (g *Guest) step(s *sim, request []byte) []byte {
	in := frame.Stepping{Decision: frame.NoDecision()}
	before := s.status
	if !g.place(s, frame.Running, frame.Idle, frame.NeedTiming, frame.NeedScaling, frame.Done) || !g.read(request, in.Fields(before)...) {
		return g.answer
	}
	switch {
	case in.Events < 1:
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: "events"})
	case before == frame.NeedTiming && !s.replay.Answer(in.AnswerMs):
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: "answer_ms"})
	case before == frame.NeedScaling && !s.replay.Scale(in.Decision):
		return g.refuse(frame.Fault{Code: frame.NotInRange, Name: frame.BadTarget(in.Decision)})
	}
	if before != frame.Idle && before != frame.Done {
		if s.replay == nil {
			if s.run.Routing.Mode == config.Direct && s.load.Targets == nil { // nothing says where
				return g.refuse(frame.Fault{Code: frame.WrongState, Found: int64(s.status)})
			}
			s.replay = replay.New(s.run.Replay, s.load, replay.Options{Plain: s.run.Plain, Eventful: s.run.Eventful, Record: s.run.Record})
		}
		s.status = statusOf(s.replay.Step(in.Events))
	}
	return g.sayProgress(s)
}

// statusOf is a status of the core as frames have it.
func statusOf(s replay.Status) frame.Status {
	switch s {
	case replay.Running:
		return frame.Running
	case replay.Idle:
		return frame.Idle
	case replay.NeedTiming:
		return frame.NeedTiming
	case replay.NeedScaling:
		return frame.NeedScaling
	case replay.Done:
		return frame.Done
	}
	return frame.Failed
}

func (g *Guest) progress(s *sim, request []byte) []byte {
	if !g.read(request) {
		return g.answer
	}
	return g.sayProgress(s)
}

// sayProgress answers how far a run is, why it has failed and what it asks.
func (g *Guest) sayProgress(s *sim) []byte {
	p := frame.Progressed{Status: s.status}
	if s.load != nil {
		p.Total = int64(len(s.load.Turns))
	}
	if s.replay == nil {
		return g.say(p.Fields()...)
	}
	p.Done, p.Total = s.replay.Progress()
	switch s.status {
	case frame.Failed:
		p.Fault = s.replay.Fault()
		if p.Fault.Router.OK() {
			return g.say(p.FaultFields()...)
		}
		if p.Fault.Router.Code == router.QueueFull {
			p.Class = s.replay.RouterClass(p.Fault.Router.Full.Class)
		}
		return g.say(p.RouterFields()...)
	case frame.NeedTiming:
		p.Query, _ = s.replay.Query()
		return g.say(p.QueryFields()...)
	}
	return g.say(p.Fields()...)
}

// ended reports whether a simulation has results.
func (g *Guest) ended(s *sim) bool { return g.place(s, frame.Done) }

func (g *Guest) summarize(s *sim, request []byte) []byte {
	if !g.ended(s) || !g.read(request) {
		return g.answer
	}
	return g.say(frame.SummaryFields(s.reduced())...)
}

// reduced is the summary of a run that has ended. It is made once: making it
// sorts the samples.
func (s *sim) reduced() *replay.Summary {
	if s.summary == nil {
		summary := s.replay.Summary()
		s.summary = &summary
	}
	return s.summary
}
