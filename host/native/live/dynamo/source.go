package dynamo

import (
	"context"
	"time"

	"github.com/dryserve/dryserve/host/native/live/handoff"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// source is a request whose prompt is computed here and handed over to a worker
// that decodes.
type source struct {
	w       *unit
	a       *reply
	request worker.Request
	conn    *handoff.Conn
	end     *handoff.Source
	ear     *ear
	job     *worker.Job // nil: not asked for yet

	startMs  float64
	session  *time.Timer
	transfer *time.Timer
	over     bool
}

// source answers with the first token, and ends when the prompt has been handed
// over.
func (w *unit) source(ctx context.Context, a *reply, q worker.Request, id handoff.Identity) bool {
	if !a.to.Flush() {
		return false
	}
	conn, err := w.desk.server.Await(ctx, id)
	if err != nil {
		return ctx.Err() == nil && fail(a.to, err.Error())
	}
	order, _, _ := handoff.OrderOf(w.site.o.Engine.Backend)
	q.Duty = worker.Prompt
	s := &source{
		w: w, a: a, request: q, conn: conn, end: handoff.NewSource(id.Handoff, order, w.timing(a)), ear: w.ear(),
		startMs: w.site.o.Clock.NowMs(), session: time.NewTimer(duration(w.site.o.Handoff.TimeoutMs)), transfer: time.NewTimer(time.Hour),
	}
	s.transfer.Stop()
	defer s.session.Stop()
	defer s.transfer.Stop()
	defer func() {
		if s.job != nil {
			s.job.Cancel() // nothing if it has ended
		}
	}()
	s.do(s.end.Begin())
	for !s.over {
		var list []handoff.Step
		select {
		case <-ctx.Done():
			s.leave(handoff.Left)
			return false
		case h := <-conn.Heard():
			if h.Err == nil {
				list, h.Err = s.end.Hear(h.Message)
			}
			if h.Err != nil {
				return s.fail(h.Err, !h.Lost)
			}
		case <-s.ear.wake:
			var done, complete bool
			if list, done, complete = s.hear(); done {
				return complete
			}
		case <-s.transfer.C:
			list = s.end.Transferred()
		case <-s.session.C:
			s.leave(handoffLate)
			if !s.end.Asked() {
				return fail(a.to, outputsClosed)
			}
			return fail(a.to, handoffLate)
		}
		s.do(list)
		if !a.to.Flush() {
			s.leave(handoff.Left)
			return false
		}
	}
	a.finish()
	return true
}

// hear takes what the engine has said. done: that was all, since the prompt will
// not be computed.
func (s *source) hear() (list []handoff.Step, done, complete bool) {
	for _, f := range s.ear.facts() {
		if f.Fact == worker.Held {
			list = append(list, s.end.Computed()...)
			s.extend(s.w.timing(s.a).TransferMs(0))
		}
	}
	if done, complete = s.a.say(s.ear.now()); done {
		s.leave(handoff.Left)
	}
	return list, done, complete
}

// do does what the dialogue wants.
func (s *source) do(list []handoff.Step) {
	for _, x := range list {
		switch x.Kind {
		case handoff.Send:
			_ = s.conn.Send(x.Message) // a destination that has gone is heard of
		case handoff.Compute:
			s.job = s.w.loop.Submit(s.request, s.ear)
		case handoff.Transfer:
			s.extend(x.Ms)
			s.transfer.Reset(duration(x.Ms))
		case handoff.Release:
			s.job.Release()
		case handoff.End:
			s.over = true
			s.w.desk.server.Leave(s.conn)
		}
	}
}

// extend gives the dialogue the time of its transfer.
func (s *source) extend(ms float64) {
	left := s.startMs + s.w.site.o.Handoff.TimeoutMs + ms - s.w.site.o.Clock.NowMs()
	s.session.Reset(duration(max(left, 0)))
}

// fail ends the answer because the handoff has failed. What has not been computed
// ends as an answer without tokens does.
func (s *source) fail(err error, speak bool) bool {
	if speak {
		s.leave(err.Error())
	} else {
		s.w.desk.server.Leave(s.conn)
	}
	if !s.end.Asked() && err != handoff.ErrCanceled {
		return fail(s.a.to, outputsClosed)
	}
	return fail(s.a.to, err.Error())
}

// leave ends the dialogue and says why.
func (s *source) leave(why string) {
	s.w.desk.server.Leave(s.conn, handoff.Message{Kind: handoff.Abort, Text: why})
}
