// Package handoff is how a worker that computes a prompt hands it to one that
// decodes: the bytes of the bootstrap port, who meets whom there, and in which
// order the two act.
//
// It owns frames and messages, the meeting of the two workers of a handoff, and
// the two ends of their dialogue. It does not own engines, requests, or what a
// client is answered (live/dynamo).
//
// A Source and a Target are values that are stepped: they are told what has
// happened and return what to do. Only a Server and Dial have to do with
// connections.
//
// Invariants:
//   - reading allocates no more than a frame may have; nothing that is read makes
//     it panic.
//   - the identity of a dialogue never changes within it.
//   - the ids of a source's actions are 0, 1, 2, …, whether the action is its own
//     or its destination's.
//
// Source: live notes §6; checked against its captures and against release 1.6.1.
package handoff

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// UUID names a handoff or a request.
type UUID [16]byte

func (u UUID) String() string {
	t := hex.EncodeToString(u[:])
	return t[:8] + "-" + t[8:12] + "-" + t[12:16] + "-" + t[16:20] + "-" + t[20:]
}

// MarshalText is String.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText reads 32 hexadecimal digits, with hyphens or without.
func (u *UUID) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(strings.ReplaceAll(string(text), "-", ""))
	if err != nil || len(b) != len(u) {
		return errors.New("a UUID is accepted")
	}
	copy(u[:], b)
	return nil
}

// Identity names a dialogue. Both workers know it from the frontend.
type Identity struct {
	Handoff UUID   `json:"handoff_id"`
	Room    uint64 `json:"bootstrap_room"`
	Request UUID   `json:"request_id"`
}

// Order says which of the two workers begins.
type Order uint8

// vLLM computes the prompt first, SGLang reserves room for it first.
const (
	SourceFirst Order = iota
	DestinationFirst
)

var orderWords = []string{"SourceFirst", "DestinationFirst"}

// OrderOf is the order of an engine, and its name; ok is false if it has none.
func OrderOf(b config.Backend) (o Order, engine string, ok bool) {
	switch b {
	case config.VLLM:
		return SourceFirst, "vllm", true
	case config.SGLang:
		return DestinationFirst, "sglang", true
	}
	return 0, "", false
}

// Kind tells messages apart.
type Kind uint8

// The messages.
const (
	Register   Kind = iota // of a destination: Rank, Order, Engine
	Registered             // both workers are there
	Do                     // of a source: ID, Action
	Done                   // the answer to it: ID, Outcome
	Held                   // the prompt is computed: Timing
	Reserved               // there is room for it: Tokens that a transfer has to bring
	Complete               // it has been handed over
	Abort                  // Text says why
	Overloaded             // there are too many dialogues
	ProtocolError
)

// Action is what a destination is asked to do.
type Action uint8

// The actions.
const (
	Reserve Action = iota
	Activate
	Cancel
)

var actionWords = []string{"ReserveDestination", "ActivateDestination", "CancelDestination"}

// Outcome is what came of an action; Failure says why if it Failed.
type Outcome struct {
	Word    Word
	Failure string
}

// Word is the kind of an outcome.
type Word uint8

// The outcomes.
const (
	Accepted Word = iota // it will be done
	Applied              // it is done
	Noop                 // there was nothing to do
	Failed
)

var outcomeWords = []string{"Accepted", "Applied", "Noop", "Failed"}

// String is the outcome as the reference's sentences have it.
func (o Outcome) String() string {
	if o.Word == Failed {
		return "Failed(" + cliutil.Quote(o.Failure) + ")"
	}
	return outcomeWords[o.Word]
}

// Timing is what the time of a transfer follows from.
type Timing struct {
	Missing       bool     // only what the destination lacks is brought
	PromptTokens  uint64   // of the whole prompt
	BytesPerToken *uint64  // nil: not known
	BandwidthGBs  *float64 // decimal; nil: no limit
}

// TransferMs is how long a transfer takes; missing is what the destination
// lacks, in tokens.
func (t Timing) TransferMs(missing uint64) float64 {
	tokens := t.PromptTokens
	if t.Missing {
		tokens = missing
	}
	if t.BytesPerToken == nil || t.BandwidthGBs == nil || !(*t.BandwidthGBs > 0) {
		return 0
	}
	return float64(float64(tokens)*float64(*t.BytesPerToken)) / float64(*t.BandwidthGBs*1e9) * 1000
}

// Message is one message; which fields count follows from Kind.
type Message struct {
	Kind    Kind
	Rank    uint32
	Order   Order
	Engine  string
	ID      uint64
	Action  Action
	Outcome Outcome
	Handoff UUID // of an action or a fact
	Timing  Timing
	Tokens  uint64
	Text    string
}

// MaxFrame is the largest frame in bytes.
const MaxFrame = 64 << 10

// Hello begins a connection: magic bytes, version 1, no flags.
const Hello = "DMHF\x01\x00\x00\x00"

// AppendFrame appends a message in its frame: the length in four bytes, little
// end first, and JSON.
func AppendFrame(b []byte, id Identity, m Message) []byte {
	first := len(b)
	b = append(b, 0, 0, 0, 0)
	b = fmt.Appendf(b, `{"identity":{"handoff_id":"%s","bootstrap_room":%d,"request_id":"%s"},"message":`, id.Handoff, id.Room, id.Request)
	b = append(m.append(b), '}')
	binary.LittleEndian.PutUint32(b[first:], uint32(len(b)-first-4))
	return b
}

func (m *Message) append(b []byte) []byte {
	switch m.Kind {
	case Register:
		return fmt.Appendf(b, `{"Register":{"role":"Destination","dp_rank":%d,"order":"%s","engine_type":"%s"}}`, m.Rank, orderWords[m.Order], m.Engine)
	case Registered:
		return append(b, `"Registered"`...)
	case Do:
		return fmt.Appendf(b, `{"Action":{"id":%d,"action":{"%s":{"handoff_id":"%s"}}}}`, m.ID, actionWords[m.Action], m.Handoff)
	case Done:
		b = fmt.Appendf(b, `{"ActionAck":{"action_id":%d,"outcome":`, m.ID)
		if m.Outcome.Word == Failed {
			b = append(cliutil.AppendJSONString(append(b, `{"Failed":`...), m.Outcome.Failure), '}')
		} else {
			b = append(append(append(b, '"'), outcomeWords[m.Outcome.Word]...), '"')
		}
		return append(b, "}}"...)
	case Held:
		b = fmt.Appendf(b, `{"Fact":{"SourceHeld":{"handoff_id":"%s","transfer_timing":`, m.Handoff)
		return append(m.Timing.append(b), "}}}"...)
	case Reserved:
		return fmt.Appendf(b, `{"Fact":{"DestinationReserved":{"handoff_id":"%s","transferable_prompt_tokens":%d}}}`, m.Handoff, m.Tokens)
	case Complete:
		return append(b, `"Complete"`...)
	case Abort:
		return append(cliutil.AppendJSONString(append(b, `{"Abort":{"message":`...), m.Text), "}}"...)
	case Overloaded:
		return append(b, `"Overloaded"`...)
	}
	return append(cliutil.AppendJSONString(append(b, `{"ProtocolError":{"message":`...), m.Text), "}}"...)
}

var timingWords = []string{"full_prompt", "destination_missing"}

func (t *Timing) append(b []byte) []byte {
	mode := timingWords[0]
	if t.Missing {
		mode = timingWords[1]
	}
	b = fmt.Appendf(b, `{"mode":"%s","full_prompt_tokens":%d,"kv_bytes_per_token":`, mode, t.PromptTokens)
	if t.BytesPerToken != nil {
		b = strconv.AppendUint(b, *t.BytesPerToken, 10)
	} else {
		b = append(b, "null"...)
	}
	b = append(b, `,"bandwidth_gb_s":`...)
	if t.BandwidthGBs != nil {
		b = cliutil.AppendSerdeFloat(b, *t.BandwidthGBs)
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

// Faults of frames, in the reference's words.
var (
	errMalformed = errors.New("bootstrap frame contains malformed JSON")
	errIdentity  = errors.New("bootstrap frame changed session identity")
	errEmpty     = errors.New("bootstrap received an empty frame")
	errSize      = errors.New("frame size too big")
	errCut       = errors.New("bytes remaining on stream")
)

// ReadHello reads the beginning of a connection.
func ReadHello(r io.Reader) error {
	var b [len(Hello)]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return err
	}
	if string(b[:]) != Hello {
		return errors.New("the connection does not begin with the protocol's name, version 1 and no flags")
	}
	return nil
}

// ReadFrame reads a frame; io.EOF says that there is none any more.
func ReadFrame(r io.Reader) (id Identity, m Message, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return id, m, err
	}
	switch n := binary.LittleEndian.Uint32(head[:]); {
	case n == 0:
		return id, m, errEmpty
	case n > MaxFrame:
		return id, m, errSize
	default:
		b := make([]byte, n)
		if _, err := io.ReadFull(r, b); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			return id, m, err
		}
		return decode(b)
	}
}

// form is the JSON of messages: those that are words are of no object.
type form struct {
	Register *struct {
		Role   string  `json:"role"`
		Rank   *uint32 `json:"dp_rank"`
		Order  string  `json:"order"`
		Engine string  `json:"engine_type"`
	}
	Action *struct {
		ID     *uint64 `json:"id"`
		Action map[string]struct {
			Handoff *UUID `json:"handoff_id"`
		} `json:"action"`
	}
	ActionAck *struct {
		ID      *uint64         `json:"action_id"`
		Outcome json.RawMessage `json:"outcome"`
	}
	Fact *struct {
		SourceHeld *struct {
			Handoff *UUID `json:"handoff_id"`
			Timing  *struct {
				Mode          string   `json:"mode"`
				PromptTokens  *uint64  `json:"full_prompt_tokens"`
				BytesPerToken *uint64  `json:"kv_bytes_per_token"`
				BandwidthGBs  *float64 `json:"bandwidth_gb_s"`
			} `json:"transfer_timing"`
		}
		DestinationReserved *struct {
			Handoff *UUID   `json:"handoff_id"`
			Tokens  *uint64 `json:"transferable_prompt_tokens"`
		}
	}
	Abort, ProtocolError *struct {
		Message *string `json:"message"`
	}
}

func decode(b []byte) (id Identity, m Message, err error) {
	var whole struct {
		Identity *struct {
			Handoff *UUID   `json:"handoff_id"`
			Room    *uint64 `json:"bootstrap_room"`
			Request *UUID   `json:"request_id"`
		} `json:"identity"`
		Message json.RawMessage `json:"message"`
	}
	if json.Unmarshal(b, &whole) != nil || whole.Identity == nil || whole.Message == nil {
		return id, m, errMalformed
	}
	i := whole.Identity
	if i.Handoff == nil || i.Room == nil || i.Request == nil {
		return id, m, errMalformed
	}
	id = Identity{*i.Handoff, *i.Room, *i.Request}
	ok := false
	if bytes.HasPrefix(whole.Message, []byte(`"`)) {
		m, ok = word(whole.Message)
	} else {
		var f form
		if json.Unmarshal(whole.Message, &f) == nil {
			m, ok = f.message()
		}
	}
	if !ok {
		return id, m, errMalformed
	}
	return id, m, nil
}

func word(text json.RawMessage) (m Message, ok bool) {
	for kind, w := range map[Kind]string{Registered: `"Registered"`, Complete: `"Complete"`, Overloaded: `"Overloaded"`} {
		if string(text) == w {
			return Message{Kind: kind}, true
		}
	}
	return m, false
}

func (f *form) message() (m Message, ok bool) {
	switch {
	case f.Register != nil:
		r := f.Register
		m = Message{Kind: Register, Engine: r.Engine}
		m.Order, ok = find[Order](orderWords, r.Order)
		known := r.Engine == "vllm" || r.Engine == "sglang" || r.Engine == "trtllm"
		if !ok || r.Rank == nil || r.Role != "Destination" || !known {
			return m, false
		}
		m.Rank = *r.Rank
	case f.Action != nil:
		a := f.Action
		m = Message{Kind: Do}
		if a.ID == nil || len(a.Action) != 1 {
			return m, false
		}
		m.ID = *a.ID
		for name, of := range a.Action {
			if m.Action, ok = find[Action](actionWords, name); !ok || of.Handoff == nil {
				return m, false
			}
			m.Handoff = *of.Handoff
		}
	case f.ActionAck != nil:
		m = Message{Kind: Done}
		if f.ActionAck.ID == nil {
			return m, false
		}
		m.ID = *f.ActionAck.ID
		m.Outcome, ok = outcome(f.ActionAck.Outcome)
		return m, ok
	case f.Fact != nil:
		return f.fact()
	case f.Abort != nil && f.Abort.Message != nil:
		m = Message{Kind: Abort, Text: *f.Abort.Message}
	case f.ProtocolError != nil && f.ProtocolError.Message != nil:
		m = Message{Kind: ProtocolError, Text: *f.ProtocolError.Message}
	default:
		return m, false
	}
	return m, true
}

func (f *form) fact() (m Message, ok bool) {
	switch h, r := f.Fact.SourceHeld, f.Fact.DestinationReserved; {
	case h != nil:
		if h.Handoff == nil || h.Timing == nil || h.Timing.PromptTokens == nil {
			return m, false
		}
		mode, known := find[uint8](timingWords, h.Timing.Mode)
		t := Timing{Missing: mode == 1, PromptTokens: *h.Timing.PromptTokens, BytesPerToken: h.Timing.BytesPerToken, BandwidthGBs: h.Timing.BandwidthGBs}
		return Message{Kind: Held, Handoff: *h.Handoff, Timing: t}, known
	case r != nil:
		if r.Handoff == nil || r.Tokens == nil {
			return m, false
		}
		return Message{Kind: Reserved, Handoff: *r.Handoff, Tokens: *r.Tokens}, true
	}
	return m, false
}

func outcome(text json.RawMessage) (o Outcome, ok bool) {
	var w string
	if json.Unmarshal(text, &w) == nil {
		o.Word, ok = find[Word](outcomeWords[:Failed], w)
		return o, ok
	}
	var failed struct{ Failed *string }
	if json.Unmarshal(text, &failed) != nil || failed.Failed == nil {
		return o, false
	}
	return Outcome{Failed, *failed.Failed}, true
}

// find is the number of a word.
func find[T ~uint8](words []string, w string) (T, bool) {
	for i, x := range words {
		if x == w {
			return T(i), true
		}
	}
	return 0, false
}
