package handoff

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// captured are the two directions of a connection that the reference was watched
// at, by its number.
func captured(t testing.TB, file string, stream int) (toSource, toTarget []byte) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var segment struct {
			Stream   int
			Dir, Hex string
		}
		if err := json.Unmarshal([]byte(line), &segment); err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(segment.Hex)
		switch {
		case err != nil:
			t.Fatal(err)
		case segment.Stream != stream:
		case segment.Dir == "to_server":
			toSource = append(toSource, b...)
		default:
			toTarget = append(toTarget, b...)
		}
	}
	return toSource, toTarget
}

// messages are the frames of one direction.
func messages(t testing.TB, b []byte) (id Identity, list []Message) {
	t.Helper()
	r := bytes.NewReader(b)
	for {
		i, m, err := ReadFrame(r)
		if err == io.EOF {
			return id, list
		}
		if err != nil {
			t.Fatal(err)
		}
		id, list = i, append(list, m)
	}
}

// The reference's own dialogues, byte for byte: both ends say what it says when
// they are told what it was told.
func TestGoldenDialogues(t *testing.T) {
	bytesPerToken, bandwidth := uint64(57344), 1.0
	for _, c := range []struct {
		file   string
		stream int
		order  Order
		engine string
		room   uint64
		timing Timing
		ms     float64
	}{
		{"bootstrap_vllm_source_first.jsonl", 6, SourceFirst, "vllm", 192, Timing{PromptTokens: 150, BytesPerToken: &bytesPerToken}, 0},
		{"bootstrap_vllm_source_first.jsonl", 14, SourceFirst, "vllm", 64, Timing{PromptTokens: 150, BytesPerToken: &bytesPerToken}, 0},
		{"bootstrap_sglang_destination_first.jsonl", 5, DestinationFirst, "sglang", 160,
			Timing{Missing: true, PromptTokens: 150, BytesPerToken: &bytesPerToken, BandwidthGBs: &bandwidth}, 9.175040000000001},
	} {
		toSource, toTarget := captured(t, c.file, c.stream)
		id, fromTarget := messages(t, toSource[len(Hello):])
		_, fromSource := messages(t, toTarget)

		source := NewSource(id.Handoff, c.order, c.timing)
		said := AppendFrame(nil, id, Message{Kind: Registered})
		var play func(list []Step)
		play = func(list []Step) {
			for _, x := range list {
				switch x.Kind {
				case Send:
					said = AppendFrame(said, id, x.Message)
				case Compute:
					play(source.Computed())
				case Transfer:
					if x.Ms != c.ms {
						t.Errorf("%s: the transfer takes %v ms, want %v", c.file, x.Ms, c.ms)
					}
					play(source.Transferred())
				}
			}
		}
		play(source.Begin())
		for _, m := range fromTarget[1:] {
			list, err := source.Hear(m)
			if err != nil {
				t.Fatal(err)
			}
			play(list)
		}
		if d := cmp.Diff(string(toTarget), string(said)); d != "" {
			t.Errorf("%s, %d: the source (-reference +ours)\n%s", c.file, c.stream, d)
		}

		target := NewTarget(id.Handoff)
		said = AppendFrame([]byte(Hello), id, Message{Kind: Register, Order: c.order, Engine: c.engine})
		play = func(list []Step) {
			for _, x := range list {
				switch x.Kind {
				case Send:
					said = AppendFrame(said, id, x.Message)
				case AskRoom:
					play(target.Answered(true))
					play(target.Room(c.room))
				case AskActivation:
					play(target.Activated(true))
				}
			}
		}
		for _, m := range fromSource {
			list, err := target.Hear(m)
			if err != nil {
				t.Fatal(err)
			}
			play(list)
		}
		if d := cmp.Diff(string(toSource), string(said)); d != "" || !target.Active() || !target.Completed() {
			t.Errorf("%s, %d: the target (-reference +ours)\n%s", c.file, c.stream, d)
		}
	}
}

// Every kind of message comes back as it was written.
func TestRoundTrip(t *testing.T) {
	bytesPerToken, bandwidth := uint64(7), 0.5
	id := Identity{UUID{1, 2, 3}, 1 << 63, UUID{15: 9}}
	for _, m := range []Message{
		{Kind: Register, Rank: 3, Order: DestinationFirst, Engine: "sglang"}, {Kind: Registered}, {Kind: Complete}, {Kind: Overloaded},
		{Kind: Do, ID: 5, Action: Cancel, Handoff: id.Handoff}, {Kind: Done, ID: 5, Outcome: Outcome{Word: Noop}},
		{Kind: Done, ID: 1 << 40, Outcome: Outcome{Failed, `a "reason"`}}, {Kind: Held, Handoff: id.Handoff, Timing: Timing{PromptTokens: 1}},
		{Kind: Held, Handoff: id.Handoff, Timing: Timing{Missing: true, BytesPerToken: &bytesPerToken, BandwidthGBs: &bandwidth}},
		{Kind: Reserved, Handoff: id.Handoff, Tokens: 12}, {Kind: Abort, Text: "ü\n"}, {Kind: ProtocolError, Text: ""},
	} {
		i, got, err := ReadFrame(bytes.NewReader(AppendFrame(nil, id, m)))
		if d := cmp.Diff(m, got); err != nil || i != id || d != "" {
			t.Errorf("%v, %v: %s", err, i, d)
		}
	}
}

// What is no message is refused with the reference's sentence.
func TestMalformed(t *testing.T) {
	const head = `{"identity":{"handoff_id":"00000000-0000-4000-8000-000000000001","bootstrap_room":1,"request_id":"00000000-0000-4000-8000-000000000002"},"message":`
	frame := func(s string) []byte { return append([]byte{byte(len(s)), byte(len(s) >> 8), 0, 0}, s...) }
	for _, text := range []string{
		"abc", "{}", `{"identity":{},"message":"Complete"}`, strings.Replace(head, "0001", "", 1) + `"Complete"}`, head + `"Nonsense"}`, head + `null}`, head + `{}}`, head + `{"Nonsense":1}}`,
		head + `{"Register":{"role":"Source","dp_rank":0,"order":"SourceFirst","engine_type":"vllm"}}}`,
		head + `{"Register":{"role":"Destination","dp_rank":-1,"order":"SourceFirst","engine_type":"vllm"}}}`,
		head + `{"Register":{"role":"Destination","dp_rank":0,"order":"Never","engine_type":"vllm"}}}`,
		head + `{"Register":{"role":"Destination","dp_rank":0,"order":"SourceFirst","engine_type":"foo"}}}`,
		head + `{"Action":{"id":1,"action":{}}}}`, head + `{"Action":{"id":1,"action":{"Sing":{"handoff_id":"00000000-0000-4000-8000-000000000001"}}}}}`,
		head + `{"ActionAck":{"action_id":1,"outcome":"Failed"}}}`, head + `{"ActionAck":{"action_id":1}}}`, head + `{"ActionAck":{"outcome":"Noop"}}}`,
		head + `{"Fact":{}}}`, head + `{"Fact":{"DestinationReserved":{"handoff_id":"00000000-0000-4000-8000-000000000001","transferable_prompt_tokens":-1}}}}`,
		head + `{"Fact":{"SourceHeld":{"handoff_id":"00000000-0000-4000-8000-000000000001","transfer_timing":{"mode":"x","full_prompt_tokens":1}}}}}`, head + `{"Abort":{}}}`,
	} {
		if _, m, err := ReadFrame(bytes.NewReader(frame(text))); err != errMalformed {
			t.Errorf("%s: %v, %+v", text, err, m)
		}
	}
	for text, want := range map[string]error{
		"": io.EOF, "\x01\x00": io.ErrUnexpectedEOF, "\x00\x00\x00\x00": errEmpty, "\x01\x00\x01\x00": errSize, "\xff\xff\xff\xff": errSize, "\x09\x00\x00\x00{": io.ErrUnexpectedEOF,
	} {
		if _, _, err := ReadFrame(strings.NewReader(text)); err != want {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
	for _, text := range []string{"DMHF\x02\x00\x00\x00", "DMHF\x01\x00\x01\x00", "XXXX\x01\x00\x00\x00", "DMHF"} {
		if ReadHello(strings.NewReader(text)) == nil {
			t.Errorf("%q is a greeting", text)
		}
	}
}

func FuzzReadFrame(f *testing.F) {
	for file, stream := range map[string]int{"bootstrap_vllm_source_first.jsonl": 6, "bootstrap_sglang_destination_first.jsonl": 5} {
		a, b := captured(f, file, stream)
		for _, stream := range [][]byte{a[len(Hello):], b} {
			id, list := messages(f, stream)
			for _, m := range list { // short inputs are made shorter sooner
				f.Add(AppendFrame(nil, id, m))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for r := bytes.NewReader(b); ; {
			id, m, err := ReadFrame(r)
			if err != nil {
				return
			}
			i, again, err := ReadFrame(bytes.NewReader(AppendFrame(nil, id, m)))
			if d := cmp.Diff(m, again); err != nil || i != id || d != "" {
				t.Fatalf("%v: %s", err, d)
			}
			_ = m.describe()
		}
	})
}

// Whatever is said to the two ends, and whatever their engines do meanwhile, they
// neither panic nor speak for ever, and no source releases a prompt twice.
func FuzzDialogue(f *testing.F) {
	f.Add([]byte{0x01, 0x13, 0x06, 0x33, 0x07}, true)
	f.Add([]byte{0x01, 0x03, 0x06, 0x33, 0x02, 0x12, 0x0a, 0x0b, 0x0c, 0x0d, 0xf3}, false)
	f.Fuzz(func(t *testing.T, script []byte, first bool) {
		order := SourceFirst
		if !first {
			order = DestinationFirst
		}
		source, target := NewSource(UUID{1}, order, Timing{}), NewTarget(UUID{1})
		released, computing, moving := 0, false, false
		play := func(list []Step) {
			if len(list) > 3 {
				t.Fatalf("%d steps", len(list))
			}
			for _, x := range list {
				switch x.Kind {
				case Compute:
					computing = true
				case Transfer:
					moving = true
				case Release:
					released++
				}
			}
		}
		play(source.Begin())
		for _, b := range script {
			n := b >> 4
			m := Message{
				Kind: Kind(b & 15), ID: uint64(n & 7), Action: Action(n % 3), Outcome: Outcome{Word: Word(n >> 2)}, Handoff: UUID{1 + n>>3},
				Tokens: uint64(n), Engine: "vllm",
			}
			switch {
			case m.Kind > ProtocolError && computing:
				computing = false
				play(source.Computed())
			case m.Kind > ProtocolError && moving:
				moving = false
				play(source.Transferred())
			case m.Kind > ProtocolError:
				if target.Busy() {
					_, _ = target.Activated(n&1 == 0), target.Cancelled(n&2 == 0)
				}
			default:
				list, err := source.Hear(m)
				if err != nil && err.Error() == "" && m.Kind != Abort && m.Kind != ProtocolError {
					t.Fatalf("%+v fails without a word", m)
				}
				play(list)
				if !target.Busy() {
					_, _ = target.Hear(m)
				}
			}
		}
		if released > 1 {
			t.Fatalf("the prompt is released %d times", released)
		}
	})
}
