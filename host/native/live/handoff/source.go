package handoff

import (
	"errors"
	"fmt"

	"github.com/dryserve/dryserve/host/native/cliutil"
)

// StepKind is what an end of a dialogue wants done.
type StepKind uint8

// What a Source wants: a message sent; its prompt computed; to be told when so
// many ms have passed; its prompt's blocks given back.
//
// What a Target wants: a message sent; room for its prompt, or the prompt
// activated, or what it has of one given back.
//
// What both want in the end: nothing more.
const (
	Send StepKind = iota
	End

	Compute
	Transfer
	Release

	AskRoom
	AskActivation
	AskCancel
)

// Step is one thing to do.
type Step struct {
	Kind    StepKind
	Message Message // to send
	Ms      float64 // of a transfer
}

// Source is the end of a dialogue at the worker that computes the prompt. Its
// methods return what is to be done, in this order, or why the handoff has
// failed; it is over then.
type Source struct {
	handoff UUID
	order   Order
	timing  Timing
	actions []issued // by id
	reserve uint64   // id of the destination's action, as are those that follow
	active  uint64   // 0: not asked for yet
	cancel  uint64   // 0: nothing has failed
	asked   bool     // to compute the prompt
	held    bool
	room    bool
	missing uint64 // tokens
}

// issued is an action and what came of it.
type issued struct {
	remote bool
	done   bool
	result Outcome
}

// ErrCanceled is how a handoff ends that the destination could not go on with.
var ErrCanceled = errors.New("handoff canceled")

// NewSource returns the end of a worker whose engine has an order.
func NewSource(handoff UUID, order Order, t Timing) *Source {
	return &Source{handoff: handoff, order: order, timing: t}
}

// Asked reports whether the prompt has been asked for.
func (s *Source) Asked() bool { return s.asked }

// Begin: the destination is there.
func (s *Source) Begin() []Step {
	if s.order == SourceFirst {
		return s.compute()
	}
	return s.askRoom(nil)
}

func (s *Source) compute() []Step {
	s.own()
	s.asked = true
	return []Step{{Kind: Compute}}
}

func (s *Source) askRoom(list []Step) []Step {
	s.reserve = s.remote()
	return append(list, s.do(s.reserve, Reserve))
}

// own and remote count actions; its own are as good as done.
func (s *Source) own() {
	s.actions = append(s.actions, issued{done: true, result: Outcome{Word: Applied}})
}

func (s *Source) remote() uint64 {
	s.actions = append(s.actions, issued{remote: true})
	return uint64(len(s.actions) - 1)
}

func (s *Source) do(id uint64, a Action) Step {
	return Step{Kind: Send, Message: Message{Kind: Do, ID: id, Action: a, Handoff: s.handoff}}
}

// Computed: the prompt has been computed and its blocks are held.
func (s *Source) Computed() []Step {
	s.held = true
	list := []Step{{Kind: Send, Message: Message{Kind: Held, Handoff: s.handoff, Timing: s.timing}}}
	if s.order == SourceFirst {
		return s.askRoom(list)
	}
	return s.transfer(list)
}

func (s *Source) transfer(list []Step) []Step {
	s.own()
	return append(list, Step{Kind: Transfer, Ms: s.timing.TransferMs(s.missing)})
}

// Transferred: the time of the transfer has passed.
func (s *Source) Transferred() []Step {
	s.active = s.remote()
	return []Step{s.do(s.active, Activate)}
}

// Hear takes what the destination says.
func (s *Source) Hear(m Message) ([]Step, error) {
	switch {
	case m.Kind == Done:
		return s.answered(m.ID, m.Outcome)
	case m.Kind == Reserved && m.Handoff == s.handoff:
		return s.reserved(m.Tokens)
	case m.Kind == Abort, m.Kind == ProtocolError:
		return nil, errors.New(m.Text)
	case m.Kind == Overloaded:
		return nil, errors.New("destination overloaded")
	}
	return nil, fmt.Errorf("unexpected destination bootstrap message: %s", m.describe())
}

func (s *Source) answered(id uint64, o Outcome) ([]Step, error) {
	if id >= uint64(len(s.actions)) {
		return nil, fmt.Errorf("unknown handoff action HandoffActionId(%d)", id)
	}
	a := &s.actions[id]
	if a.done {
		if a.result == o {
			return nil, nil
		}
		return nil, fmt.Errorf("conflicting outcome for handoff action HandoffActionId(%d)", id)
	}
	switch {
	case s.cancel > 0 && id == s.cancel:
		switch o.Word {
		case Applied, Noop:
			return nil, ErrCanceled
		case Failed:
			return nil, fmt.Errorf("handoff cleanup action HandoffActionId(%d) failed", id)
		}
		return nil, fmt.Errorf("invalid handoff action outcome %s", o)
	case o.Word == Failed:
		a.done, a.result = true, o
		return s.undo(), nil
	case s.active > 0 && id == s.active:
		if o.Word != Applied {
			return nil, fmt.Errorf("invalid handoff action outcome %s", o)
		}
		a.done, a.result = true, o
		s.own()
		return []Step{{Kind: Release}, {Kind: Send, Message: Message{Kind: Complete}}, {Kind: End}}, nil
	case o.Word != Accepted:
		return nil, fmt.Errorf("invalid handoff action outcome %s", o)
	}
	a.done, a.result = true, o
	return nil, nil
}

// undo: the destination cannot do what it should. What there is of the handoff
// is given back, on both sides.
func (s *Source) undo() (list []Step) {
	if s.asked {
		s.own()
		list = append(list, Step{Kind: Release})
	}
	s.cancel = s.remote()
	return append(list, s.do(s.cancel, Cancel))
}

// reserved: the destination has room. Only the first time counts.
func (s *Source) reserved(tokens uint64) ([]Step, error) {
	switch {
	case s.order == SourceFirst && s.reserve == 0, len(s.actions) == 0, !s.actions[s.reserve].done:
		return nil, errors.New("destination reserved before ownership was accepted")
	case s.room, s.cancel > 0:
		return nil, nil
	}
	s.room, s.missing = true, tokens
	if s.order == SourceFirst {
		return s.transfer(nil), nil
	}
	return s.compute(), nil
}

// describe spells a message that is out of place.
func (m *Message) describe() string {
	switch m.Kind {
	case Register:
		return fmt.Sprintf("Register(ParticipantRegistration { role: Destination, dp_rank: %d, order: %s, engine_type: %s })", m.Rank, orderWords[m.Order], typeWords[m.Engine])
	case Registered:
		return "Registered"
	case Complete:
		return "Complete"
	case Overloaded:
		return "Overloaded"
	case Do:
		return fmt.Sprintf("Action(IssuedHandoffAction { id: HandoffActionId(%d), action: %s { handoff_id: HandoffId(%s) } })", m.ID, actionWords[m.Action], m.Handoff)
	case Held:
		return fmt.Sprintf("Fact(SourceHeld { handoff_id: HandoffId(%s), transfer_timing: %s })", m.Handoff, m.Timing.describe())
	case Reserved:
		return fmt.Sprintf("Fact(DestinationReserved { handoff_id: HandoffId(%s), transferable_prompt_tokens: %d })", m.Handoff, m.Tokens)
	}
	return m.Text
}

func (t *Timing) describe() string {
	mode, bytes, bandwidth := "FullPrompt", "None", "None"
	if t.Missing {
		mode = "DestinationMissing"
	}
	if t.BytesPerToken != nil {
		bytes = fmt.Sprintf("Some(%d)", *t.BytesPerToken)
	}
	if t.BandwidthGBs != nil {
		bandwidth = fmt.Sprintf("Some(%s)", cliutil.AppendSerdeFloat(nil, *t.BandwidthGBs))
	}
	return fmt.Sprintf("HandoffTransferTiming { mode: %s, full_prompt_tokens: %d, kv_bytes_per_token: %s, bandwidth_gb_s: %s }", mode, t.PromptTokens, bytes, bandwidth)
}

// typeWords are engines as the reference's sentences have them.
var typeWords = map[string]string{"vllm": "Vllm", "sglang": "Sglang", "trtllm": "Trtllm"}
