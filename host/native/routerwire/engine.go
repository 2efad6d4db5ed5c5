package routerwire

import (
	"errors"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
)

// Batch is what an engine publishes of its cache.
type Batch struct {
	Ts     float64
	Events []EngineEvent
	Rank   *uint32 // data-parallel rank, if it is said
}

// EngineEventKind tells the events of an engine apart.
type EngineEventKind string

// The kinds.
const (
	BlockStored      EngineEventKind = "BlockStored"
	BlockRemoved     EngineEventKind = "BlockRemoved"
	AllBlocksCleared EngineEventKind = "AllBlocksCleared"
)

// EngineEvent is an event as an engine words it. It names blocks its own way;
// the local hashes are for the receiver to compute from the tokens.
type EngineEvent struct {
	Kind      EngineEventKind
	Hashes    []uint64 // signed ones as their bits
	Parent    *uint64
	Tokens    []uint32
	BlockSize int
	Medium    string // "": the device
	Lora      string
	Salt      string
}

// errKind is returned for events of other kinds; a receiver skips them.
var errKind = errors.New("unknown kind of event")

// DecodeBatch reads a batch: [timestamp, events, rank or nil]. An event is a map
// with "type", or an array that begins with its type. Fields and events that
// are not known are skipped.
func DecodeBatch(data []byte) (Batch, error) {
	if err := sound(data); err != nil {
		return Batch{}, err
	}
	var raw []msgpack.RawMessage
	if err := msgpack.Unmarshal(data, &raw); err != nil {
		return Batch{}, err
	}
	if len(raw) < 2 {
		return Batch{}, fmt.Errorf("a batch has %d parts; timestamp and events are needed", len(raw))
	}
	var b Batch
	var events []msgpack.RawMessage
	if err := errors.Join(msgpack.Unmarshal(raw[0], &b.Ts), msgpack.Unmarshal(raw[1], &events)); err != nil {
		return Batch{}, err
	}
	if len(raw) > 2 && !isNil(raw[2]) {
		if err := msgpack.Unmarshal(raw[2], &b.Rank); err != nil {
			return Batch{}, fmt.Errorf("rank: %w", err)
		}
	}
	for i, text := range events {
		e, err := decodeEvent(text)
		if errors.Is(err, errKind) {
			continue
		}
		if err != nil {
			return Batch{}, fmt.Errorf("event %d: %w", i, err)
		}
		b.Events = append(b.Events, e)
	}
	return b, nil
}

// positions are the names of an event's fields by their place in an array.
var positions = map[EngineEventKind][]string{
	BlockStored:      {"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name"},
	BlockRemoved:     {"block_hashes", "medium"},
	AllBlocksCleared: {},
}

func decodeEvent(text msgpack.RawMessage) (EngineEvent, error) {
	fields := map[string]msgpack.RawMessage{}
	if isNil(text) {
		return EngineEvent{}, errors.New("nil is no event")
	}
	if code := text[0]; code >= 0x80 && code <= 0x8f || code == 0xde || code == 0xdf {
		if err := msgpack.Unmarshal(text, &fields); err != nil {
			return EngineEvent{}, err
		}
	} else {
		var list []msgpack.RawMessage
		if err := msgpack.Unmarshal(text, &list); err != nil {
			return EngineEvent{}, err
		}
		if len(list) == 0 {
			return EngineEvent{}, errors.New("an empty array")
		}
		var kind EngineEventKind
		if err := msgpack.Unmarshal(list[0], &kind); err != nil {
			return EngineEvent{}, err
		}
		fields["type"] = list[0]
		for i, name := range positions[kind] {
			if i+1 < len(list) {
				fields[name] = list[i+1]
			}
		}
	}
	return eventOf(fields)
}

func eventOf(fields map[string]msgpack.RawMessage) (e EngineEvent, err error) {
	read := func(name string, to any) {
		if raw, ok := fields[name]; ok && err == nil && !isNil(raw) {
			if err = msgpack.Unmarshal(raw, to); err != nil {
				err = fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	read("type", &e.Kind)
	if _, ok := positions[e.Kind]; err == nil && !ok {
		return e, errKind
	}
	var hashes []msgpack.RawMessage
	read("block_hashes", &hashes)
	for _, raw := range hashes {
		h, bad := blockHash(raw)
		if err = errors.Join(err, bad); err == nil {
			e.Hashes = append(e.Hashes, h)
		}
	}
	if raw, ok := fields["parent_block_hash"]; ok && !isNil(raw) {
		h, bad := blockHash(raw)
		e.Parent, err = &h, errors.Join(err, bad)
	}
	read("token_ids", &e.Tokens)
	read("block_size", &e.BlockSize)
	read("medium", &e.Medium)
	if raw, ok := fields["lora_name"]; ok && !isNil(raw) && !isText(raw[0]) {
		var salted struct {
			Salt string `msgpack:"cache_salt"`
		}
		read("lora_name", &salted)
		e.Salt = salted.Salt
	} else {
		read("lora_name", &e.Lora)
	}
	return e, err
}

// isNil reports whether there is no value, or a nil.
func isNil(raw msgpack.RawMessage) bool { return len(raw) == 0 || raw[0] == 0xc0 }

// blockHash reads a hash that is written as a signed or an unsigned number.
func blockHash(raw msgpack.RawMessage) (uint64, error) {
	var u uint64
	if err := msgpack.Unmarshal(raw, &u); err == nil {
		return u, nil
	}
	var i int64
	err := msgpack.Unmarshal(raw, &i)
	return uint64(i), err
}

// media are the engines' names of the tiers.
var media = map[string]Tier{
	"": Device, "GPU": Device, "DEVICE": Device,
	"CPU": HostPinned, "CPU_PINNED": HostPinned, "CPU_TIER1": HostPinned,
	"CPU_TIER2": Disk, "DISK": Disk, "NVME": Disk, "STORAGE": Disk,
	"EXTERNAL": External, "NETWORK": External, "REMOTE": External, "SHARED": External,
}

// TierOf is the tier an engine means by a medium; events of others are skipped.
func TierOf(medium string) (Tier, bool) {
	t, ok := media[medium]
	return t, ok
}

// Medium is how a tier is written; ok is false for the device, of which nothing
// is said.
func (t Tier) Medium() (medium string, ok bool) {
	switch t {
	case HostPinned:
		return "CPU_PINNED", true
	case Disk:
		return "DISK", true
	case External:
		return "EXTERNAL", true
	}
	return "", false
}
