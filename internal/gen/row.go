package gen

import (
	"bufio"
	"encoding/json"
	"io"
)

// Row is one line of a Mooncake trace (replay notes §3.1). A nil pointer or
// slice leaves the key out; the alias fields let a case use the second name
// of a key.
type Row struct {
	RequestID *string `json:"request_id,omitempty"`
	SessionID *string `json:"session_id,omitempty"`

	Timestamp   *float64 `json:"timestamp,omitempty"` // ms
	CreatedTime *float64 `json:"created_time,omitempty"`
	Delay       *float64 `json:"delay,omitempty"` // ms
	DelayMs     *float64 `json:"delay_ms,omitempty"`

	InputLength  *int64 `json:"input_length,omitempty"` // tokens
	InputTokens  *int64 `json:"input_tokens,omitempty"`
	OutputLength *int64 `json:"output_length,omitempty"` // tokens
	OutputTokens *int64 `json:"output_tokens,omitempty"`

	OutputTokenIDs []uint32 `json:"output_token_ids,omitzero"`
	HashIDs        []uint64 `json:"hash_ids,omitzero"`

	Priority       *int32  `json:"priority,omitempty"`
	StrictPriority *uint32 `json:"strict_priority,omitempty"`
	Note           *string `json:"note,omitempty"` // a key no reader knows

	BlankBefore bool `json:"-"` // an empty line stands before the row
}

// WriteRows writes rows as JSON lines.
func WriteRows(w io.Writer, rows []Row) error {
	b := bufio.NewWriter(w)
	for i := range rows {
		if rows[i].BlankBefore {
			if err := b.WriteByte('\n'); err != nil {
				return err
			}
		}
		line, err := json.Marshal(&rows[i])
		if err != nil {
			return err
		}
		if _, err := b.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return b.Flush()
}
