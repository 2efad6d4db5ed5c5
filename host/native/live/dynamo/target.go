package dynamo

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/dryserve/dryserve/host/native/live/handoff"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// target is a request whose prompt is computed by another worker, and that
// decodes here.
type target struct {
	w       *unit
	a       *reply
	request worker.Request
	conn    *handoff.Conn
	end     *handoff.Target
	ear     *ear
	job     *worker.Job // nil: nothing is asked for yet

	session *time.Timer
	missing uint64
	over    bool
}

// target answers with the tokens that are decoded here.
func (w *unit) target(ctx context.Context, a *reply, q worker.Request, id handoff.Identity) bool {
	order, engine, _ := handoff.OrderOf(w.site.o.Engine.Backend)
	b := a.p.Bootstrap
	if !a.to.Call() {
		return false
	}
	conn, err := handoff.Dial(ctx, net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), id, uint32(q.Rank), engine, order)
	if err != nil {
		a.to.Refuse(err.Error())
		return true
	}
	q.Duty = worker.Decoding
	t := &target{w: w, a: a, request: q, conn: conn, end: handoff.NewTarget(id.Handoff), ear: w.ear(), session: time.NewTimer(time.Hour)}
	t.session.Stop()
	defer t.session.Stop()
	ended := false
	defer func() {
		if t.job != nil && !ended {
			t.job.Cancel()
		}
	}()
	defer func() { t.close(ctx) }()
	for {
		if !a.to.Flush() {
			return false
		}
		in := conn.Heard()
		if t.end.Busy() || t.over {
			in = nil
		}
		select {
		case <-ctx.Done():
			return false
		case h := <-in:
			t.heard(h)
		case <-t.session.C:
			t.over = true
		case <-t.ear.wake:
			var complete bool
			if ended, complete = t.hear(); ended {
				return complete
			}
		}
		if t.over && !t.end.Completed() {
			if t.end.Accepted() {
				return fail(a.to, handoffEnded)
			}
			return fail(a.to, outputsClosed)
		}
	}
}

// heard takes what the source has said.
func (t *target) heard(h handoff.Heard) {
	var list []handoff.Step
	if h.Err == nil {
		list, h.Err = t.end.Hear(h.Message)
	}
	if h.Err != nil {
		t.over = true
		return
	}
	switch m := h.Message; m.Kind {
	case handoff.Registered:
		t.conn.Met()
		t.session.Reset(duration(t.w.site.o.Handoff.TimeoutMs) + spare)
	case handoff.Complete:
		t.session.Stop()
	case handoff.Held:
		t.session.Reset(duration(t.w.site.o.Handoff.TimeoutMs+m.Timing.TransferMs(t.missing)) + spare)
	}
	t.do(list)
}

// spare is how much longer than a source, which says so, a destination waits.
const spare = 30 * time.Second

// hear takes what the engine has said. ended: that was all.
func (t *target) hear() (ended, complete bool) {
	for _, f := range t.ear.facts() {
		switch f.Fact {
		case worker.Accepted:
			t.do(t.end.Answered(true))
		case worker.Reserved:
			t.missing = uint64(f.Tokens)
			t.do(t.end.Room(t.missing))
		case worker.Activated, worker.Idle:
			t.do(t.end.Activated(f.Fact == worker.Activated))
		}
	}
	tokens, cached, last := t.ear.now()
	if last.End == worker.Refused && !t.end.Accepted() {
		t.do(t.end.Answered(false))
		t.job = nil
		return false, false
	}
	return t.a.say(tokens, cached, last)
}

// do does what the dialogue wants.
func (t *target) do(list []handoff.Step) {
	for _, x := range list {
		switch x.Kind {
		case handoff.Send:
			_ = t.conn.Send(x.Message) // a source that has gone is heard of
		case handoff.AskRoom:
			t.job = t.w.loop.Submit(t.request, t.ear)
		case handoff.AskActivation:
			if t.job == nil {
				t.do(t.end.Activated(false))
			} else {
				t.job.Activate()
			}
		case handoff.AskCancel:
			if t.job != nil {
				t.job.Cancel()
			}
			t.do(t.end.Cancelled(t.job != nil))
		case handoff.End:
			t.over = true
		}
	}
}

// close ends the dialogue. A source that has yet to hear of the activation is
// given the time for it.
func (t *target) close(ctx context.Context) {
	if !t.end.Active() || t.end.Completed() || t.over || ctx.Err() != nil {
		t.conn.Close()
		return
	}
	late := time.NewTimer(spare)
	t.w.site.loops.Go(func() {
		defer t.conn.Close()
		defer late.Stop()
		for {
			select {
			case h := <-t.conn.Heard():
				if h.Err != nil || h.Message.Kind == handoff.Complete {
					return
				}
			case <-late.C:
				return
			case <-t.w.site.ctx.Done():
				return
			}
		}
	})
}
