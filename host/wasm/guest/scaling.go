package guest

import "github.com/dryserve/dryserve/host/wasm/frame"

// tick tells what the policy is asked.
func (g *Guest) tick(s *sim, request []byte) []byte {
	if !g.place(s, frame.NeedScaling) || !g.read(request) {
		return g.answer
	}
	t, _ := s.replay.Tick()
	return g.say(frame.TickOf(t).Fields()...)
}

// samples gives out what was sampled since it was asked last.
func (g *Guest) samples(s *sim, request []byte) []byte {
	if !g.read(request) {
		return g.answer
	}
	if s.replay == nil || s.run.Samples.EveryMs == 0 {
		return g.refuse(frame.Fault{Code: frame.WrongState, Found: int64(s.status)})
	}
	var c frame.SampleColumns
	all := s.replay.Samples()
	for i := range all {
		c.Add(&all[i])
	}
	s.replay.ForgetSamples()
	return g.say(c.Fields()...)
}

// lifecycle tells what happened to workers.
func (g *Guest) lifecycle(s *sim, request []byte) []byte {
	if !g.ended(s) {
		return g.answer
	}
	all := s.replay.Lifecycle()
	var c frame.LifecycleColumns
	return g.table(request, len(all), func(i int) { c.Add(&all[i]) }, c.Fields)
}
