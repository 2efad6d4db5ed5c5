package routerwire

import (
	"encoding/json"
	"fmt"
)

// ActiveLoad is how busy a worker is, as it says itself.
type ActiveLoad struct {
	WorkerID      uint64  `json:"worker_id" msgpack:"worker_id"`
	Rank          uint32  `json:"dp_rank" msgpack:"dp_rank"`
	DecodeBlocks  *uint64 `json:"active_decode_blocks" msgpack:"active_decode_blocks"`
	PrefillTokens *uint64 `json:"active_prefill_tokens" msgpack:"active_prefill_tokens"`
	UsedBlocks    *uint64 `json:"kv_used_blocks" msgpack:"kv_used_blocks"`
}

// SequenceEvent tells other routers of a booking.
type SequenceEvent struct {
	RequestID string       `json:"request_id"`
	Worker    WorkerRank   `json:"worker"`
	Data      SequenceData `json:"data"`
	RouterID  uint64       `json:"router_id"`
	Lora      *string      `json:"lora_name"`
}

// WorkerRank is a rank of a worker.
type WorkerRank struct {
	WorkerID uint64 `json:"worker_id"`
	Rank     uint32 `json:"dp_rank"`
}

// SequenceData is what happened to the booking: Add if it is not nil, else Word.
type SequenceData struct {
	Add  *AddRequest
	Word SequenceWord
}

// SequenceWord is an event without numbers.
type SequenceWord string

// The events without numbers.
const (
	Free                 SequenceWord = "Free"
	MarkPrefillCompleted SequenceWord = "MarkPrefillCompleted"
)

// AddRequest is a new booking.
type AddRequest struct {
	Sequence     []uint64     `json:"token_sequence"`
	TrackPrefill bool         `json:"track_prefill_tokens"`
	OutputTokens *uint32      `json:"expected_output_tokens"`
	PrefillLoad  *PrefillLoad `json:"prefill_load_hint"`
}

// PrefillLoad is the prompt work of a booking.
type PrefillLoad struct {
	Tokens   uint64    `json:"initial_effective_prefill_tokens"`
	Duration *Duration `json:"expected_prefill_duration"`
}

// Duration is a span of time.
type Duration struct {
	Secs  uint64 `json:"secs"`
	Nanos uint32 `json:"nanos"`
}

// addition is SequenceData with numbers.
type addition struct {
	Add *AddRequest `json:"AddRequest"`
}

// MarshalJSON writes {"AddRequest":…} or the word.
func (d SequenceData) MarshalJSON() ([]byte, error) {
	if d.Add != nil {
		return json.Marshal(addition{d.Add})
	}
	return json.Marshal(d.Word)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *SequenceData) UnmarshalJSON(text []byte) error {
	*d = SequenceData{}
	if len(text) > 0 && text[0] == '"' {
		if err := json.Unmarshal(text, &d.Word); err != nil {
			return err
		}
		if d.Word != Free && d.Word != MarkPrefillCompleted {
			return fmt.Errorf("data is %q; {\"AddRequest\":…}, %q or %q is accepted", d.Word, Free, MarkPrefillCompleted)
		}
		return nil
	}
	var a addition
	if err := json.Unmarshal(text, &a); err != nil {
		return err
	}
	if a.Add == nil {
		return fmt.Errorf("data has no AddRequest; {\"AddRequest\":…}, %q or %q is accepted", Free, MarkPrefillCompleted)
	}
	d.Add = a.Add
	return nil
}

// Methods of the router's endpoint; requests and answers carry them.
const (
	MethodNew            = "new"
	MethodPotentialLoads = "potential_loads"
	MethodMarkPrefill    = "mark_prefill"
	MethodMarkFree       = "mark_free"
	AnswerPrefillMarked  = "prefill_marked"
	AnswerFreeMarked     = "free_marked"
)

// Request asks the router's endpoint for something. Without a method it asks
// where a new request goes.
type Request struct {
	Method       string   `json:"method"`
	Tokens       []uint32 `json:"tokens,omitempty"`
	PriorityJump *float64 `json:"priority_jump,omitempty"`
	RequestID    string   `json:"request_id,omitempty"`
}

// Answer is what the endpoint says.
type Answer struct {
	Method        string          `json:"method"`
	WorkerID      *uint64         `json:"worker_id,omitempty"`
	Rank          *uint32         `json:"dp_rank,omitempty"`
	OverlapBlocks *uint32         `json:"overlap_blocks,omitempty"`
	Loads         []PotentialLoad `json:"loads,omitempty"`
	PendingCount  *uint64         `json:"pending_count,omitempty"`
	PendingTokens *uint64         `json:"pending_isl_tokens,omitempty"`
	Success       *bool           `json:"success,omitempty"`
}

// PotentialLoad is what a rank would be busy with if it got a request.
type PotentialLoad struct {
	WorkerID       uint64 `json:"worker_id"`
	Rank           uint32 `json:"dp_rank"`
	PrefillTokens  uint64 `json:"potential_prefill_tokens"`
	DecodeBlocks   uint64 `json:"potential_decode_blocks"`
	ActiveRequests uint64 `json:"active_requests"`
}
