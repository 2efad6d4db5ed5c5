// Package card is what workers say of themselves where they are found: records of
// endpoints and of events, and the card of the model they serve.
//
// It owns the records' JSON and the reading of the model's files that a card
// describes. It does not own where records are kept (live/discovery).
//
// Invariants: fields stand in the reference's order, and those that it leaves out
// are left out.
//
// Source: live notes §2.2, §2.3; checked against its captures.
package card

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Endpoint names an endpoint of one worker.
type Endpoint struct {
	Namespace, Component, Name string
	Instance                   uint64
	Codec                      string // of requests and answers; "": msgpack
}

// Key is where its record stands, without the bucket.
func (e Endpoint) Key() string {
	return e.Namespace + "/" + e.Component + "/" + e.Name + "/" + Hex(e.Instance)
}

// Path is what requests for it carry.
func (e Endpoint) Path() string {
	return Hex(e.Instance) + "/" + e.Namespace + "/" + e.Component + "/" + e.Name
}

// EventKey is where a publisher of its events is recorded.
func (e Endpoint) EventKey(topic string, publisher uint64) string {
	return "namespace/" + segment(e.Namespace) + "/component/" + segment(e.Component) + "/endpoint/" + segment(e.Name) + "/topic/" + segment(topic) + "/" + Hex(publisher)
}

// segment spells a part of such a key.
func segment(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Hex is an id as keys have it.
func Hex(id uint64) string { return strconv.FormatUint(id, 16) }

// QueryName is the name of the endpoint that answers for what a publisher has
// said of a cache.
func QueryName(publisher uint64) string { return "worker_kv_query_source_" + Hex(publisher) }

type instance struct {
	Type      string            `json:"type,omitempty"`
	Component string            `json:"component"`
	Endpoint  string            `json:"endpoint"`
	Namespace string            `json:"namespace"`
	ID        uint64            `json:"instance_id"`
	Transport map[string]string `json:"transport"`
	Device    string            `json:"device_type"`
	Codec     string            `json:"request_plane_codec"`
}

// Transport says how requests for an endpoint travel.
type Transport func(Endpoint) map[string]string

// TCP is a server that listens at an address.
func TCP(address string) Transport {
	return func(e Endpoint) map[string]string { return map[string]string{"tcp": address + "/" + e.Path()} }
}

// NATS is a subject of NATS.
func NATS(e Endpoint) map[string]string { return map[string]string{"nats_tcp": e.Subject()} }

// Subject is where requests for it are published.
func (e Endpoint) Subject() string {
	return e.Namespace + "_" + e.Component + "." + e.Name + "-" + Hex(e.Instance)
}

// EventSubject begins the subjects of its events; the topic follows after a dot.
func (e Endpoint) EventSubject() string {
	return "namespace." + e.Namespace + ".component." + e.Component + ".endpoint." + e.Name
}

func (e Endpoint) instance(by Transport) instance {
	codec := e.Codec
	if codec == "" {
		codec = "msgpack"
	}
	return instance{
		Component: e.Component, Endpoint: e.Name, Namespace: e.Namespace, ID: e.Instance,
		Transport: by(e), Device: "cuda", Codec: codec,
	}
}

// Record is the record of an endpoint.
func (e Endpoint) Record(by Transport) []byte {
	i := e.instance(by)
	i.Type = "Endpoint"
	return encode(i)
}

type name struct {
	Namespace string `json:"namespace"`
	Component string `json:"component"`
	Name      string `json:"name"`
}

type scope struct {
	Kind     string `json:"kind"`
	Endpoint name   `json:"endpoint"`
}

func (e Endpoint) name() name { return name{e.Namespace, e.Component, e.Name} }

// Channel says how a publisher of events is heard.
type Channel struct {
	Kind   string            `json:"kind"`
	Config map[string]string `json:"config"`
}

// ZMQ is a publisher that listens at an address such as tcp://127.0.0.1:5555.
func ZMQ(address string) Channel { return Channel{"Zmq", map[string]string{"endpoint": address}} }

// NATSEvents is one that publishes under subjects of NATS.
func NATSEvents(e Endpoint) Channel {
	return Channel{"Nats", map[string]string{"subject_prefix": e.EventSubject()}}
}

// ChannelRecord says how a publisher of events is heard.
func (e Endpoint) ChannelRecord(topic string, publisher uint64, by Channel) []byte {
	return encode(struct {
		Type      string  `json:"type"`
		Scope     scope   `json:"scope"`
		Topic     string  `json:"topic"`
		Publisher uint64  `json:"instance_id"`
		Transport Channel `json:"transport"`
	}{"EventChannel", scope{"endpoint", e.name()}, topic, publisher, by})
}

// SourceRecord says whose cache a publisher speaks of, and who can be asked for
// what was missed: the endpoint named by QueryName.
func (e Endpoint) SourceRecord(topic string, publisher uint64, rank int, by Transport) []byte {
	type worker struct {
		ID   uint64 `json:"worker_id"`
		Rank int    `json:"dp_rank"`
	}
	type metadata struct {
		Endpoint  name     `json:"kv_state_endpoint"`
		Worker    worker   `json:"worker"`
		Publisher uint64   `json:"publisher_id"`
		Recovery  instance `json:"recovery_target"`
	}
	query := e
	query.Name = QueryName(publisher)
	return encode(struct {
		Type      string   `json:"type"`
		Scope     scope    `json:"scope"`
		Topic     string   `json:"topic"`
		Publisher uint64   `json:"publisher_id"`
		Metadata  metadata `json:"metadata"`
	}{"EventSource", scope{"endpoint", e.name()}, topic, publisher, metadata{e.name(), worker{e.Instance, rank}, publisher, query.instance(by)}})
}

// Model describes what a worker serves.
type Model struct {
	Name      string // "": as the path, or dynamo
	Path      string // directory of the model; "": none
	BlockSize int
	Context   int // longest sequence, 0: no limit
	Blocks    int // of KV cache, of a rank
	MaxSeqs   int
	MaxTokens int // of a pass
	Ranks     int

	Role      config.Role
	Bootstrap Bootstrap       // of a worker that computes prompts
	Publishes bool            // its cache tells what it holds
	Generates bool            // it answers requests in SGLang's own form
	Router    json.RawMessage // that a frontend should have; nil: its own
}

// Bootstrap is where workers that decode find one that computes prompts.
type Bootstrap struct {
	Host string `json:"bootstrap_host"`
	Port int    `json:"bootstrap_port"` // 0: nowhere
}

type file struct {
	Path     string `json:"path"`
	Checksum string `json:"checksum"`
	Size     int    `json:"size"`
}

type runtime struct {
	Context      int             `json:"context_length"`
	Blocks       int             `json:"total_kv_blocks"`
	MaxSeqs      int             `json:"max_num_seqs"`
	MaxTokens    int             `json:"max_num_batched_tokens"`
	ToolParser   *string         `json:"tool_call_parser"`
	Reasoning    *string         `json:"reasoning_parser"`
	ToolFormat   string          `json:"tool_call_arguments_format"`
	TagMode      string          `json:"structural_tag_mode"`
	TagScope     string          `json:"structural_tag_scope"`
	TagSchema    string          `json:"structural_tag_schema"`
	ExcludeTools bool            `json:"exclude_tools_when_tool_choice_none"`
	FirstRank    int             `json:"data_parallel_start_rank"`
	Ranks        int             `json:"data_parallel_size"`
	LocalIndexer bool            `json:"enable_local_indexer"`
	Publishes    bool            `json:"kv_event_publishing_enabled"`
	Data         map[string]bool `json:"runtime_data"`
	Bootstrap    *Bootstrap      `json:"disaggregated_endpoint,omitempty"`
	Eagle        bool            `json:"enable_eagle"`
}

type card struct {
	DisplayName   string            `json:"display_name"`
	Slug          string            `json:"slug"`
	SourcePath    string            `json:"source_path,omitempty"`
	Info          map[string]file   `json:"model_info"`
	Tokenizer     map[string]file   `json:"tokenizer"`
	Formatter     map[string]file   `json:"prompt_formatter,omitempty"`
	Generation    map[string]file   `json:"gen_config,omitempty"`
	Architectural int               `json:"architectural_max_context_length"`
	Context       int               `json:"context_length"`
	BlockSize     int               `json:"kv_cache_block_size"`
	Migration     int               `json:"migration_limit"`
	Type          string            `json:"model_type"`
	Input         string            `json:"model_input"`
	Worker        string            `json:"worker_type"`
	Needs         []json.RawMessage `json:"needs"`
	Runtime       runtime           `json:"runtime_config"`
	Decoder       *string           `json:"media_decoder"`
	Fetcher       *string           `json:"media_fetcher"`
	Router        json.RawMessage   `json:"router_config,omitempty"`
}

// Card reads the model's files and returns the card of a worker.
func (m Model) Card() (json.RawMessage, error) {
	c := card{
		DisplayName: m.DisplayName(), Slug: Slug(m.DisplayName()), SourcePath: m.Path, BlockSize: m.BlockSize, Context: m.Context, Router: m.Router,
		Type: "Chat | Completions", Input: "Tokens", Worker: "aggregated", Needs: []json.RawMessage{},
		Runtime: runtime{
			Context: m.Context, Blocks: m.Blocks, MaxSeqs: m.MaxSeqs, MaxTokens: m.MaxTokens, ToolFormat: "json_string", TagMode: "off", TagScope: "auto", TagSchema: "auto",
			ExcludeTools: true, Ranks: m.Ranks, LocalIndexer: m.Role != config.Decode, Publishes: m.Publishes && m.Role != config.Decode,
			Data: map[string]bool{"output_replay_consumer": true},
		},
	}
	if m.Generates {
		c.Runtime.Data["sglang_generate"] = true
	}
	switch m.Role {
	case config.Prefill:
		c.Type, c.Worker, c.Needs = "", "prefill", []json.RawMessage{json.RawMessage(`["decode"]`)}
		if m.Bootstrap.Port > 0 {
			c.Runtime.Bootstrap = &m.Bootstrap
		}
	case config.Decode:
		c.Worker, c.Needs = "decode", []json.RawMessage{json.RawMessage(`["prefill"]`)}
	}
	if m.Path == "" {
		return encode(c), nil
	}
	for _, part := range []struct {
		to       *map[string]file
		kind     string
		name     string
		optional bool
	}{
		{&c.Info, "hf_config_json", "config.json", false}, {&c.Tokenizer, "hf_tokenizer_json", "tokenizer.json", false},
		{&c.Formatter, "hf_tokenizer_config_json", "tokenizer_config.json", true}, {&c.Generation, "hf_generation_config_json", "generation_config.json", true},
	} {
		f, text, err := describe(filepath.Join(m.Path, part.name))
		if part.optional && errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		*part.to = map[string]file{part.kind: f}
		if part.name == "config.json" {
			if c.Architectural, err = positions(f.Path, text); err != nil {
				return nil, err
			}
		}
	}
	return encode(c), nil
}

// DisplayName is the name that requests ask for.
func (m Model) DisplayName() string {
	switch {
	case m.Name != "":
		return m.Name
	case m.Path != "":
		return m.Path
	}
	return "dynamo"
}

// Slug is a name in letters that keys can have.
func Slug(s string) string {
	b := []byte(strings.ToLower(s))
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			b[i] = '_'
		}
	}
	return strings.TrimLeft(string(b), "_")
}

// CardRecord is the record of a card.
func (e Endpoint) CardRecord(card json.RawMessage) []byte {
	return encode(struct {
		Type      string          `json:"type"`
		Namespace string          `json:"namespace"`
		Component string          `json:"component"`
		Endpoint  string          `json:"endpoint"`
		Instance  uint64          `json:"instance_id"`
		Card      json.RawMessage `json:"card_json"`
	}{"Model", e.Namespace, e.Component, e.Name, e.Instance, card})
}

// describe reads a file of a model.
func describe(path string) (f file, text []byte, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return f, nil, err
	}
	if text, err = os.ReadFile(path); err != nil {
		return f, nil, fmt.Errorf("%s: %w", path, cliutil.Reason(err))
	}
	sum := blake3.Sum256(text)
	return file{path, "blake3:" + hex.EncodeToString(sum[:]), len(text)}, text, nil
}

// positions is max_position_embeddings, of the text part where there are several.
func positions(path string, text []byte) (int, error) {
	var c struct {
		Positions int `json:"max_position_embeddings"`
		Text      struct {
			Positions int `json:"max_position_embeddings"`
		} `json:"text_config"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return 0, fmt.Errorf("%s: it is no model configuration: an object with whole numbers is accepted", path)
	}
	if c.Positions == 0 {
		return c.Text.Positions, nil
	}
	return c.Positions, nil
}

// encode spells as the reference does: without escapes for HTML.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the types here can always be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
