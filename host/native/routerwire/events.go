// Package routerwire is what a live KV router hears and says, as bytes: events
// of caches from workers and from engines, loads, replicated bookings, and the
// requests of its endpoint.
//
// It owns the forms, JSON and MessagePack; it does not own transports, nor what
// the messages do (core/router).
//
// Source: router notes §9.
package routerwire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/vmihailenco/msgpack/v5"
)

// RouterEvent is an event of one worker's cache.
type RouterEvent struct {
	WorkerID  uint64     `json:"worker_id" msgpack:"worker_id"`
	Tier      Tier       `json:"storage_tier" msgpack:"storage_tier"`
	Residency Residency  `json:"residency_domain,omitempty" msgpack:"residency_domain,omitempty"`
	Event     CacheEvent `json:"event" msgpack:"event"`
}

// Tier is where blocks lie.
type Tier string

// The tiers. Without one an event is of the device.
const (
	Device     Tier = "device"
	HostPinned Tier = "host_pinned"
	Disk       Tier = "disk"
	External   Tier = "external"
)

// Residency says whose the blocks are. Older senders do not say.
type Residency string

// Residencies.
const (
	Unsaid          Residency = ""
	ResidesAtWorker Residency = "worker"
	ResidesAtOwner  Residency = "cache_owner"
)

// CacheEvent is what happened.
type CacheEvent struct {
	ID   uint64    `json:"event_id" msgpack:"event_id"`
	Data EventData `json:"data" msgpack:"data"`
	Rank uint32    `json:"dp_rank" msgpack:"dp_rank"`
}

// EventData is one of three: blocks stored, blocks removed, or, if both are
// nil, everything cleared.
type EventData struct {
	Stored  *StoredBlocks
	Removed *RemovedBlocks
}

// StoredBlocks is a run of blocks behind a parent, or from the start of prompts.
type StoredBlocks struct {
	Parent *uint64       `json:"parent_hash" msgpack:"parent_hash"`
	Start  *uint32       `json:"start_position" msgpack:"start_position"`
	Blocks []StoredBlock `json:"blocks" msgpack:"blocks"`
}

// StoredBlock is a block by its external and its local hash.
type StoredBlock struct {
	Block  uint64     `json:"block_hash" msgpack:"block_hash"`
	Tokens uint64     `json:"tokens_hash" msgpack:"tokens_hash"`
	Media  *MediaInfo `json:"mm_extra_info" msgpack:"mm_extra_info"`
}

// MediaInfo is the multimodal objects that reach into a block.
type MediaInfo struct {
	Objects []MediaObject `json:"mm_objects" msgpack:"mm_objects"`
}

// MediaObject is one of them and where it stands in the block.
type MediaObject struct {
	Hash    uint64      `json:"mm_hash" msgpack:"mm_hash"`
	Offsets [][2]uint64 `json:"offsets" msgpack:"offsets"`
}

// RemovedBlocks lists external hashes.
type RemovedBlocks struct {
	Blocks []uint64 `json:"block_hashes" msgpack:"block_hashes"`
}

const cleared = "cleared"

// tagged is EventData but for "cleared".
type tagged struct {
	Stored  *StoredBlocks  `json:"stored,omitempty" msgpack:"stored,omitempty"`
	Removed *RemovedBlocks `json:"removed,omitempty" msgpack:"removed,omitempty"`
}

func (t tagged) data() (EventData, error) {
	if (t.Stored == nil) == (t.Removed == nil) {
		return EventData{}, fmt.Errorf("data has neither or both of stored and removed; one of them or %q is accepted", cleared)
	}
	return EventData(t), nil
}

// MarshalJSON writes {"stored":…}, {"removed":…} or "cleared".
func (d EventData) MarshalJSON() ([]byte, error) {
	if d == (EventData{}) {
		return json.Marshal(cleared)
	}
	return json.Marshal(tagged(d))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *EventData) UnmarshalJSON(text []byte) (err error) {
	if strings.HasPrefix(string(text), `"`) {
		var word string
		if err := json.Unmarshal(text, &word); err != nil || word != cleared {
			return fmt.Errorf("data is %s; {\"stored\":…}, {\"removed\":…} or %q is accepted", text, cleared)
		}
		*d = EventData{}
		return nil
	}
	var t tagged
	if err := json.Unmarshal(text, &t); err != nil {
		return err
	}
	*d, err = t.data()
	return err
}

// EncodeMsgpack writes the same in MessagePack.
func (d EventData) EncodeMsgpack(e *msgpack.Encoder) error {
	if d == (EventData{}) {
		return e.EncodeString(cleared)
	}
	return e.Encode(tagged(d))
}

// DecodeMsgpack reads what EncodeMsgpack writes.
func (d *EventData) DecodeMsgpack(dec *msgpack.Decoder) error {
	code, err := dec.PeekCode()
	if err != nil {
		return err
	}
	if isText(code) {
		word, err := dec.DecodeString()
		if err == nil && word != cleared {
			err = fmt.Errorf("data is %q; a map with stored or removed, or %q is accepted", word, cleared)
		}
		*d = EventData{}
		return err
	}
	var t tagged
	if err := dec.Decode(&t); err != nil {
		return err
	}
	*d, err = t.data()
	return err
}

// isText reports whether a MessagePack value that begins so is a text.
func isText(code byte) bool { return code >= 0xa0 && code <= 0xbf || code >= 0xd9 && code <= 0xdb }

// UnmarshalJSON fills in what older senders leave out, and refuses what none
// sends.
func (e *RouterEvent) UnmarshalJSON(text []byte) error {
	type plain RouterEvent
	x := struct {
		*plain
		Residency json.RawMessage `json:"residency_domain"`
	}{plain: (*plain)(e)}
	*e = RouterEvent{Tier: Device}
	if err := json.Unmarshal(text, &x); err != nil {
		return err
	}
	if x.Residency != nil {
		if string(x.Residency) == "null" {
			return fmt.Errorf("residency_domain is null; %q or %q is accepted", ResidesAtWorker, ResidesAtOwner)
		}
		if err := json.Unmarshal(x.Residency, &e.Residency); err != nil {
			return err
		}
	}
	return e.check()
}

// DecodeMsgpack is UnmarshalJSON for MessagePack.
func (e *RouterEvent) DecodeMsgpack(dec *msgpack.Decoder) error {
	type plain RouterEvent
	*e = RouterEvent{Tier: Device}
	if err := dec.Decode((*plain)(e)); err != nil {
		return err
	}
	return e.check()
}

func (e *RouterEvent) check() error {
	switch e.Tier {
	case Device, HostPinned, Disk, External:
	default:
		return fmt.Errorf("storage_tier is %q; %q, %q, %q or %q is accepted", e.Tier, Device, HostPinned, Disk, External)
	}
	switch e.Residency {
	case Unsaid, ResidesAtWorker, ResidesAtOwner:
	default:
		return fmt.Errorf("residency_domain is %q; %q or %q is accepted", e.Residency, ResidesAtWorker, ResidesAtOwner)
	}
	return nil
}

// Marshal is a message in MessagePack, maps with field names.
func Marshal(v any) ([]byte, error) {
	var b strings.Builder
	e := msgpack.NewEncoder(&b)
	e.UseCompactInts(true)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

// Unmarshal reads a message in MessagePack.
func Unmarshal(data []byte, v any) error {
	if err := sound(data); err != nil {
		return err
	}
	return msgpack.Unmarshal(data, v)
}
