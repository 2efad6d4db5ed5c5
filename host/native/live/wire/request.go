package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Preprocessed is what counts of a request for tokens.
type Preprocessed struct {
	Model       string
	TokenIDs    []uint32
	MaxTokens   *uint32
	Annotations []string
	Rank        *uint32    // data-parallel rank that the router has chosen
	Bootstrap   *Bootstrap // it is one half of a handoff; nil: it is not
	Generate    *Generate  // it is one of SGLang's /generate; nil: it is not
}

// Unusable is what is wrong with a request that could be read.
type Unusable struct{ Sentence string }

func (e Unusable) Error() string { return e.Sentence }

// Bootstrap says where the two halves of a handoff meet.
type Bootstrap struct {
	Host    string    `json:"bootstrap_host" msgpack:"bootstrap_host"`
	Port    uint16    `json:"bootstrap_port" msgpack:"bootstrap_port"`
	Room    uint64    `json:"bootstrap_room" msgpack:"bootstrap_room"`
	Handoff *uniqueID `json:"handoff_id" msgpack:"handoff_id"` // nil: there is none
}

// uniqueID is 16 bytes in MessagePack, a UUID in JSON.
type uniqueID [16]byte

// UnmarshalText reads a UUID.
func (u *uniqueID) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(strings.ReplaceAll(string(text), "-", ""))
	if err != nil || len(b) != len(u) {
		return fmt.Errorf("the handoff_id has %d characters; a UUID is accepted", len(text))
	}
	copy(u[:], b)
	return nil
}

// DecodeMsgpack reads bytes, or a UUID.
func (u *uniqueID) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := d.DecodeBytes()
	if err != nil {
		return err
	}
	if len(b) != len(u) {
		return u.UnmarshalText(b)
	}
	copy(u[:], b)
	return nil
}

// Annotation is the value of an annotation "key:value".
func (p *Preprocessed) Annotation(key string) (string, bool) {
	for _, a := range p.Annotations {
		if v, ok := strings.CutPrefix(a, key); ok {
			return v, true
		}
	}
	return "", false
}

// preprocessed is the form of it; token ids are a list, or the bytes of
// little-endian numbers.
type preprocessed struct {
	Model    string `json:"model" msgpack:"model"`
	TokenIDs ids    `json:"token_ids" msgpack:"token_ids"`
	Stop     *struct {
		MaxTokens *uint32 `json:"max_tokens" msgpack:"max_tokens"`
	} `json:"stop_conditions" msgpack:"stop_conditions"`
	Annotations []string `json:"annotations" msgpack:"annotations"`
	Routing     *struct {
		Rank *uint32 `json:"dp_rank" msgpack:"dp_rank"`
	} `json:"routing" msgpack:"routing"`
	Bootstrap *Bootstrap `json:"bootstrap_info" msgpack:"bootstrap_info"`
	Extra     *struct {
		Generate raw `json:"sglang_tito" msgpack:"sglang_tito"`
	} `json:"extra_args" msgpack:"extra_args"`
}

// DecodePreprocessed reads a request for tokens.
func DecodePreprocessed(c Codec, data []byte) (p Preprocessed, err error) {
	var m preprocessed
	if c == MessagePack {
		err = msgpack.Unmarshal(data, &m)
	} else {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return p, fmt.Errorf("the request cannot be read as %s: %w", c, err)
	}
	if m.TokenIDs == nil {
		return p, errors.New("the request has no token_ids")
	}
	p = Preprocessed{Model: m.Model, TokenIDs: m.TokenIDs, Annotations: m.Annotations, Bootstrap: m.Bootstrap}
	if m.Stop != nil {
		p.MaxTokens = m.Stop.MaxTokens
	}
	if m.Routing != nil {
		p.Rank = m.Routing.Rank
	}
	if m.Extra != nil && m.Extra.Generate != nil {
		if p.Generate, err = parseGenerate(c, m.Extra.Generate); err != nil {
			return p, Unusable{err.Error()}
		}
	}
	return p, nil
}

// ids are token ids; not nil once they have been read.
type ids []uint32

// DecodeMsgpack reads a list or bytes.
func (t *ids) DecodeMsgpack(d *msgpack.Decoder) error {
	code, err := d.PeekCode()
	if err != nil {
		return err
	}
	if msgpcode.IsBin(code) {
		b, err := d.DecodeBytes()
		if err != nil {
			return err
		}
		if len(b)%4 != 0 {
			return fmt.Errorf("token_ids have %d bytes; a multiple of 4 is accepted", len(b))
		}
		list := make([]uint32, 0, len(b)/4)
		for ; len(b) > 0; b = b[4:] {
			list = append(list, binary.LittleEndian.Uint32(b))
		}
		*t = list
		return nil
	}
	n, err := d.DecodeArrayLen()
	if err != nil {
		return err
	}
	list := make([]uint32, 0, min(max(n, 0), 1<<16))
	for range n {
		x, err := d.DecodeUint32()
		if err != nil {
			return err
		}
		list = append(list, x)
	}
	*t = list
	return nil
}

// KVQuery asks what a worker's cache holds, or which events led there.
type KVQuery struct {
	WorkerID uint64  `json:"worker_id" msgpack:"worker_id"`
	Rank     uint32  `json:"dp_rank" msgpack:"dp_rank"`
	Start    *uint64 `json:"start_event_id" msgpack:"start_event_id"`
	End      *uint64 `json:"end_event_id" msgpack:"end_event_id"`
}

// DecodeKVQuery reads a query.
func DecodeKVQuery(c Codec, data []byte) (q KVQuery, err error) {
	if c == MessagePack {
		err = msgpack.Unmarshal(data, &q)
	} else {
		err = json.Unmarshal(data, &q)
	}
	if err != nil {
		err = fmt.Errorf("the query cannot be read as %s: %w", c, err)
	}
	return q, err
}

// Word is a control word on a response stream.
type Word uint8

// Kill and Stop cancel the request; Other is anything else.
const (
	Other Word = iota
	Kill
	Stop
)

// ParseWord reads a header of a response stream.
func ParseWord(header []byte) Word {
	switch string(bytes.TrimSpace(header)) {
	case `"kill"`:
		return Kill
	case `"stop"`:
		return Stop
	}
	return Other
}
