package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/host/native/live/wire"
)

// The reference's own halves of answers, byte for byte.
func TestGoldenHalves(t *testing.T) {
	text, err := os.ReadFile("testdata/disagg.json")
	if err != nil {
		t.Fatal(err)
	}
	var captured map[string]string
	if err := json.Unmarshal(text, &captured); err != nil {
		t.Fatal(err)
	}
	half := func(subject string, first bool, cached int, ids ...uint32) []byte {
		var list []wire.Output
		for i, id := range ids {
			o := wire.Output{Token: id, HasToken: true, Handoff: first}
			if i == 0 {
				o.Usage = &wire.Usage{Prompt: 150, Answer: 1, Cached: cached}
			}
			list = append(list, o)
		}
		return answer(subject, wire.MessagePack, append(list, wire.Output{Finish: "length", Usage: &wire.Usage{Prompt: 150, Answer: len(ids), Cached: cached}})...)
	}
	want := map[string][]byte{
		"disagg bootstrap prefill":        half("3a4a3cd7-3e15-4dad-87cb-c57eabca5ff4", true, 0, 1696),
		"disagg bootstrap decode":         half("01687ac7-1aa9-4794-b735-bc5968871f83", false, 0, 1273, 1963, 1724, 1762),
		"disagg bootstrap prefill cached": half("212fd5d7-e254-46a8-af22-05e6e1c71b38", true, 128, 1962),
		"disagg bootstrap decode again":   half("fbde4b0e-5194-49ab-9e25-50f53e31c0c5", false, 0, 1470, 1138, 1424, 1854),
		"disagg direct prefill":           half("c97b6329-f65e-4c7b-b0f7-f70aaec7e914", true, 0, 1042),
		"disagg direct decode":            half("4c34f125-7fc0-4113-8472-352f6ebb1de5", false, 0, 1038, 1596, 1469, 1168),
	}
	if len(captured) != len(want) {
		t.Errorf("%d captures", len(captured))
	}
	for name, digits := range captured {
		got, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want[name]) {
			t.Errorf("%s (-reference +ours):\n%s", name, cmp.Diff(frames(t, got), frames(t, want[name])))
		}
	}
}

// Where the halves meet, in both codecs.
func TestBootstrapInfo(t *testing.T) {
	id := [16]byte{0xfc, 0xe1, 15: 0x71}
	packed := append([]byte("\x82\xa9token_ids\x90\xaebootstrap_info\x84\xaebootstrap_host\xa1h\xaebootstrap_port\xcd\x4b\x64\xaebootstrap_room\x07\xaahandoff_id\xc4\x10"), id[:]...)
	for codec, body := range map[wire.Codec]string{
		wire.MessagePack: string(packed),
		wire.JSON:        `{"token_ids":[],"bootstrap_info":{"bootstrap_host":"h","bootstrap_port":19300,"bootstrap_room":7,"handoff_id":"fce10000-0000-0000-0000-000000000071"}}`,
	} {
		p, err := wire.DecodePreprocessed(codec, []byte(body))
		if err != nil || p.Bootstrap == nil || p.Bootstrap.Host != "h" || p.Bootstrap.Port != 19300 || p.Bootstrap.Room != 7 || p.Bootstrap.Handoff == nil || [16]byte(*p.Bootstrap.Handoff) != id {
			t.Errorf("%s: %v, %+v", codec, err, p.Bootstrap)
		}
	}
	for _, body := range []string{`{"token_ids":[],"bootstrap_info":{"handoff_id":"x"}}`, `{"token_ids":[],"bootstrap_info":{"bootstrap_port":-1}}`, `{"token_ids":[],"bootstrap_info":{"bootstrap_port":70000}}`} {
		if _, err := wire.DecodePreprocessed(wire.JSON, []byte(body)); err == nil {
			t.Errorf("%s is read", body)
		}
	}
	if p, err := wire.DecodePreprocessed(wire.JSON, []byte(`{"token_ids":[],"bootstrap_info":null}`)); err != nil || p.Bootstrap != nil {
		t.Errorf("%v, %+v", err, p.Bootstrap)
	}
}
