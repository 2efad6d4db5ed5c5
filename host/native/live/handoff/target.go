package handoff

import (
	"errors"
	"fmt"
)

// Target is the end of a dialogue at the worker that decodes. Its methods return
// what is to be done, in this order, or why the dialogue is over.
type Target struct {
	handoff    UUID
	registered bool
	answers    map[uint64]Outcome // those given
	waits      uint64             // id of the action that the engine is asked to do
	waiting    bool

	asked    bool // for room
	accepted bool
	active   bool
	complete bool
}

// NewTarget returns the end of a worker that has just registered.
func NewTarget(handoff UUID) *Target { return &Target{handoff: handoff, answers: map[uint64]Outcome{}} }

// Accepted reports whether the engine has taken the prompt.
func (t *Target) Accepted() bool { return t.accepted }

// Active reports whether the engine decodes.
func (t *Target) Active() bool { return t.active }

// Completed reports whether the source has said that all is done. If it leaves
// before, the handoff has failed, whatever the engine has decoded.
func (t *Target) Completed() bool { return t.complete }

// Busy reports whether the engine is asked to do something. Nothing may be heard
// until it has.
func (t *Target) Busy() bool { return t.waiting }

// Hear takes what the source says.
func (t *Target) Hear(m Message) ([]Step, error) {
	switch {
	case !t.registered && m.Kind == Registered:
		t.registered = true
		return nil, nil
	case m.Kind == Abort, m.Kind == ProtocolError:
		return nil, errors.New(m.Text)
	case !t.registered && m.Kind == Overloaded:
		return nil, errors.New("the source is overloaded")
	case t.registered && m.Kind == Do:
		return t.do(m)
	case t.registered && m.Kind == Held:
		return nil, nil // the time of the transfer is the source's business
	case t.active && m.Kind == Complete:
		t.complete = true
		return nil, nil
	}
	return nil, fmt.Errorf("unexpected source bootstrap message: %s", m.describe())
}

func (t *Target) do(m Message) ([]Step, error) {
	if o, ok := t.answers[m.ID]; ok {
		return []Step{t.done(m.ID, o)}, nil
	}
	if len(t.answers) == mostAnswers {
		return nil, errors.New("the source asks for ever more")
	}
	if m.Handoff != t.handoff {
		return t.fail(m.ID, fmt.Sprintf("destination action handoff HandoffId(%s) does not match bootstrap handoff HandoffId(%s)", m.Handoff, t.handoff)), nil
	}
	if m.Action == Cancel && !t.asked {
		return nil, errors.New("there is nothing to cancel")
	}
	t.waiting, t.waits = true, m.ID
	switch m.Action {
	case Reserve:
		if t.asked {
			return t.refuse("destination request was reserved more than once"), nil
		}
		t.asked = true
		return []Step{{Kind: AskRoom}}, nil
	case Activate:
		return []Step{{Kind: AskActivation}}, nil
	}
	return []Step{{Kind: AskCancel}}, nil
}

// mostAnswers is how many actions a dialogue may have; one that goes as it
// should has two.
const mostAnswers = 64

func (t *Target) done(id uint64, o Outcome) Step {
	t.answers[id] = o
	return Step{Kind: Send, Message: Message{Kind: Done, ID: id, Outcome: o}}
}

func (t *Target) fail(id uint64, why string) []Step {
	return []Step{t.done(id, Outcome{Failed, why})}
}

func (t *Target) refuse(why string) []Step {
	t.waiting = false
	return t.fail(t.waits, why)
}

// Answered: the engine has taken the prompt, or not.
func (t *Target) Answered(taken bool) []Step {
	if !taken {
		return append(t.refuse("applying command to attention-DP rank 0"), Step{Kind: End})
	}
	t.waiting, t.accepted = false, true
	return []Step{t.done(t.waits, Outcome{Word: Accepted})}
}

// Room: the engine has room for the prompt; so many tokens have to be brought.
func (t *Target) Room(tokens uint64) []Step {
	return []Step{{Kind: Send, Message: Message{Kind: Reserved, Handoff: t.handoff, Tokens: tokens}}}
}

// Activated: the engine decodes, or had nothing to activate.
func (t *Target) Activated(applied bool) []Step {
	if !applied {
		return t.refuse(fmt.Sprintf("unexpected scheduler handoff result for HandoffId(%s): Noop", t.handoff))
	}
	t.waiting, t.active = false, true
	return []Step{t.done(t.waits, Outcome{Word: Applied})}
}

// Cancelled: the engine has given up what it had, if it had anything.
func (t *Target) Cancelled(applied bool) []Step {
	t.waiting = false
	if !applied {
		return []Step{t.done(t.waits, Outcome{Word: Noop})}
	}
	return []Step{t.done(t.waits, Outcome{Word: Applied})}
}
