package routerwire

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type goldenFile struct {
	Events []struct {
		JSON    json.RawMessage
		MsgPack string `json:"msgpack_named_hex"`
	} `json:"router_events"`
	Legacy struct {
		JSON  string
		Debug string
	} `json:"legacy_event"`
	Load     json.RawMessage   `json:"active_load"`
	Bookings []json.RawMessage `json:"active_sequence_events"`
	Endpoint []json.RawMessage `json:"router_request_response"`
	Batch    struct {
		Hex     string
		Decoded string
	} `json:"zmq_batch"`
}

func load(t *testing.T) (g goldenFile) {
	t.Helper()
	text, err := os.ReadFile("../../../testdata/router/config_wire.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// roundTrip reads JSON strictly and compares what is written again.
func roundTrip[T any](t *testing.T, text json.RawMessage) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	again, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if json.Unmarshal(again, &got) != nil || json.Unmarshal(text, &want) != nil {
		t.Fatalf("%s is no JSON", again)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", text, diff)
	}
	return v
}

// The reference's messages, byte for byte in MessagePack.
func TestGoldenEvents(t *testing.T) {
	g := load(t)
	if len(g.Events) != 3 {
		t.Fatalf("%d events", len(g.Events))
	}
	for _, c := range g.Events {
		e := roundTrip[RouterEvent](t, c.JSON)
		packed, err := Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := hex.EncodeToString(packed); got != c.MsgPack {
			t.Errorf("%s: %s, want %s", c.JSON, got, c.MsgPack)
		}
		var again RouterEvent
		if err := Unmarshal(packed, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, again); diff != "" {
			t.Error(diff)
		}
	}
	var legacy RouterEvent
	if err := json.Unmarshal([]byte(g.Legacy.JSON), &legacy); err != nil {
		t.Fatal(err)
	}
	// As g.Legacy.Debug has it.
	if diff := cmp.Diff(RouterEvent{WorkerID: 3, Tier: Device, Event: CacheEvent{ID: 1}}, legacy); diff != "" {
		t.Errorf("%s: %s", g.Legacy.Debug, diff)
	}
}

func TestGoldenMessages(t *testing.T) {
	g := load(t)
	roundTrip[ActiveLoad](t, g.Load)
	if len(g.Bookings) != 3 || len(g.Endpoint) != 7 {
		t.Fatalf("%d bookings, %d messages of the endpoint", len(g.Bookings), len(g.Endpoint))
	}
	for _, text := range g.Bookings {
		roundTrip[SequenceEvent](t, text)
	}
	for i, text := range g.Endpoint {
		if i < 4 {
			roundTrip[Request](t, text)
		} else {
			roundTrip[Answer](t, text)
		}
	}
}

func TestGoldenBatch(t *testing.T) {
	g := load(t)
	data, err := hex.DecodeString(g.Batch.Hex)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeBatch(data)
	if err != nil {
		t.Fatal(err)
	}
	parent, rank := uint64(99), uint32(0)
	want := Batch{Ts: 1.5, Rank: &rank, Events: []EngineEvent{ // as g.Batch.Decoded has it
		{Kind: BlockStored, Hashes: []uint64{101, 102}, Parent: &parent, Tokens: []uint32{1, 2, 3, 4, 5, 6, 7, 8}, BlockSize: 4, Medium: "GPU"},
		{Kind: BlockRemoved, Hashes: []uint64{101}, Medium: "GPU"},
		{Kind: AllBlocksCleared},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", g.Batch.Decoded, diff)
	}
}

// Events as maps, negative hashes, salts, kinds nobody knows.
func TestBatchVariants(t *testing.T) {
	batch := func(events ...any) []byte {
		data, err := Marshal([]any{2.5, events, nil})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	got, err := DecodeBatch(batch(
		map[string]any{"type": "BlockStored", "block_hashes": []int64{-1}, "parent_block_hash": nil, "token_ids": []int{7}, "block_size": 1, "medium": "CPU", "lora_name": "l"},
		[]any{"BlockStored", []uint64{1 << 63}, nil, []int{}, 2, nil, nil, map[string]string{"cache_salt": "s"}, 5},
		[]any{"BlockMoved", 1},
	))
	if err != nil {
		t.Fatal(err)
	}
	want := Batch{Ts: 2.5, Events: []EngineEvent{
		{Kind: BlockStored, Hashes: []uint64{1<<64 - 1}, Tokens: []uint32{7}, BlockSize: 1, Medium: "CPU", Lora: "l"},
		{Kind: BlockStored, Hashes: []uint64{1 << 63}, Tokens: []uint32{}, BlockSize: 2, Salt: "s"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range [][]byte{nil, {0x91, 1}, batch([]any{}), batch([]any{"BlockStored", []string{"x"}}), batch(map[string]any{"type": 5})} {
		if _, err := DecodeBatch(bad); err == nil {
			t.Errorf("%x is read", bad)
		}
	}
	for medium, want := range map[string]Tier{"": Device, "CPU_TIER2": Disk, "SHARED": External} {
		if got, ok := TierOf(medium); !ok || got != want {
			t.Errorf("%q is %q", medium, got)
		}
	}
	if _, ok := TierOf("TAPE"); ok {
		t.Error("TAPE is a tier")
	}
	for _, tier := range []Tier{HostPinned, Disk, External} {
		medium, ok := tier.Medium()
		if back, _ := TierOf(medium); !ok || back != tier {
			t.Errorf("%q is written %q", tier, medium)
		}
	}
}

func TestEventRefusals(t *testing.T) {
	for text, words := range map[string]string{
		`{"worker_id":1,"residency_domain":null,"event":{"event_id":1,"data":"cleared"}}`: "residency_domain is null",
		`{"worker_id":1,"residency_domain":"x","event":{"event_id":1,"data":"cleared"}}`:  `residency_domain is "x"`,
		`{"worker_id":1,"storage_tier":"x","event":{"event_id":1,"data":"cleared"}}`:      `storage_tier is "x"`,
		`{"worker_id":1,"event":{"event_id":1,"data":"x"}}`:                               `data is "x"`,
		`{"worker_id":1,"event":{"event_id":1,"data":{}}}`:                                "neither or both",
	} {
		var e RouterEvent
		if err := json.Unmarshal([]byte(text), &e); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, text := range []string{`"Stop"`, `{}`} {
		var d SequenceData
		if json.Unmarshal([]byte(text), &d) == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// No bytes make the readers panic.
func FuzzDecode(f *testing.F) {
	data, _ := hex.DecodeString("93cb3ff80000000000009391b0416c6c426c6f636b73436c656172656400c0")
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = DecodeBatch(data)
		var e RouterEvent
		_ = Unmarshal(data, &e)
	})
}
