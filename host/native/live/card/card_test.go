package card_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/card"
)

// The records of a worker of the reference, byte for byte.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/records.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	const address = "127.0.0.1:44315"
	e := card.Endpoint{Namespace: "dynamo", Component: "backend", Name: "generate", Instance: 0x71aa0e6cc1640d2c}
	query := e
	query.Name = card.QueryName(0x6ad70135abb06)
	got := map[string]string{
		"instances " + e.Key():                                      string(e.Record(card.TCP(address))),
		"instances " + query.Key():                                  string(query.Record(card.TCP(address))),
		"event_sources " + e.EventKey("kv-events", 0x6ad70135abb06): string(e.SourceRecord("kv-events", 0x6ad70135abb06, 0, card.TCP(address))),
	}
	for topic, p := range map[string]struct {
		id   uint64
		port string
	}{
		"active_sequences_events": {0x95fae0e3ee3f6, "42143"}, "forward-pass-metrics": {0x1df58d4a29858f, "36649"},
		"kv-events": {0x6ad70135abb06, "35131"}, "kv_metrics": {0x1ee9c61e1435f7, "44721"},
	} {
		got["event_channels "+e.EventKey(topic, p.id)] = string(e.ChannelRecord(topic, p.id, card.ZMQ("tcp://127.0.0.1:"+p.port)))
	}
	c, err := card.Model{Name: "Org/My-Model.v1", Path: "testdata/model", BlockSize: 64, Blocks: 16384, MaxSeqs: 256, MaxTokens: 8192, Ranks: 1, Publishes: true}.Card()
	if err != nil {
		t.Fatal(err)
	}
	key := "mdc " + e.Key()
	got[key] = files(t, string(e.CardRecord(c)))
	want[key] = files(t, want[key])
	if len(want) != 8 {
		t.Errorf("%d records", len(want))
	}
	for key, w := range want {
		if got[key] != w {
			t.Errorf("%s\ngot  %s\nwant %s", key, got[key], w)
		}
	}
}

// files puts one word in the place of the model's directory.
func files(t *testing.T, s string) string {
	t.Helper()
	dir, err := filepath.Abs("testdata/model")
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(dir, "DIR", "/models/m1", "DIR", `"source_path":"testdata/model"`, `"source_path":"DIR"`).Replace(s)
}

// The cards of a worker that computes prompts and of one that decodes.
func TestGoldenRoles(t *testing.T) {
	text, err := os.ReadFile("testdata/roles.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name, role := range map[string]config.Role{"prefill": config.Prefill, "decode": config.Decode} {
		c, err := card.Model{
			Name: "m1", Path: "testdata/model", BlockSize: 64, Blocks: 16384, MaxSeqs: 256, MaxTokens: 8192, Ranks: 1, Publishes: true,
			Role: role, Bootstrap: card.Bootstrap{Host: "127.0.0.1", Port: 19310},
		}.Card()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := files(t, string(c)), files(t, want[name]); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", name, got, want)
		}
	}
	c, err := card.Model{Role: config.Prefill, Generates: true}.Card()
	if err != nil || strings.Contains(string(c), "disaggregated_endpoint") || !strings.Contains(string(c), `"runtime_data":{"output_replay_consumer":true,"sglang_generate":true},`) {
		t.Errorf("%v: %s", err, c)
	}
}

func TestNames(t *testing.T) {
	for s, want := range map[string]string{"/a/b": "a_b", "Org/My-Model.v1": "org_my-model_v1", "": ""} {
		if got := card.Slug(s); got != want {
			t.Errorf("%q is %q", s, got)
		}
	}
	if got := (card.Model{}).DisplayName(); got != "dynamo" {
		t.Error(got)
	}
	c, err := card.Model{}.Card()
	if err != nil || !strings.HasPrefix(string(c), `{"display_name":"dynamo","slug":"dynamo","model_info":null,"tokenizer":null,"architectural_max_context_length":0,`) {
		t.Errorf("%v: %s", err, c)
	}
	if _, err := (card.Model{Path: "/no/such"}).Card(); err == nil || err.Error() != "/no/such/config.json: no such file or directory" {
		t.Error(err)
	}
}

// Records of a worker that is reached by NATS.
func TestNATS(t *testing.T) {
	e := card.Endpoint{Namespace: "dynamo", Component: "backend", Name: "generate", Instance: 0x1eeea22a8b3c6a05}
	for want, got := range map[string][]byte{
		`{"type":"Endpoint","component":"backend","endpoint":"generate","namespace":"dynamo","instance_id":2228897169203292677,"transport":{"nats_tcp":"dynamo_backend.generate-1eeea22a8b3c6a05"},"device_type":"cuda","request_plane_codec":"msgpack"}`:                                                                                                                                                                                                                                                                                                                                                                                                                                 e.Record(card.NATS),
		`{"type":"EventChannel","scope":{"kind":"endpoint","endpoint":{"namespace":"dynamo","component":"backend","name":"generate"}},"topic":"kv-events","instance_id":4225709333025092,"transport":{"kind":"Nats","config":{"subject_prefix":"namespace.dynamo.component.backend.endpoint.generate"}}}`:                                                                                                                                                                                                                                                                                                                                                                                 e.ChannelRecord("kv-events", 0xf03429fb81144, card.NATSEvents(e)),
		`{"type":"EventSource","scope":{"kind":"endpoint","endpoint":{"namespace":"dynamo","component":"backend","name":"generate"}},"topic":"kv-events","publisher_id":4225709333025092,"metadata":{"kv_state_endpoint":{"namespace":"dynamo","component":"backend","name":"generate"},"worker":{"worker_id":2228897169203292677,"dp_rank":0},"publisher_id":4225709333025092,"recovery_target":{"component":"backend","endpoint":"worker_kv_query_source_f03429fb81144","namespace":"dynamo","instance_id":2228897169203292677,"transport":{"nats_tcp":"dynamo_backend.worker_kv_query_source_f03429fb81144-1eeea22a8b3c6a05"},"device_type":"cuda","request_plane_codec":"msgpack"}}}`: e.SourceRecord("kv-events", 0xf03429fb81144, 0, card.NATS),
	} {
		if string(got) != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
