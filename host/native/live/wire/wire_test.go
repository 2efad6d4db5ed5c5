package wire_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/host/native/live/wire"
)

// captures are streams of the reference, worker to frontend but for requests.
func captures(t testing.TB) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile("testdata/captures.json")
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]string
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for name, digits := range m {
		if out[name], err = hex.DecodeString(digits); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// answer writes a whole response stream.
func answer(subject string, c wire.Codec, outputs ...wire.Output) []byte {
	b := wire.AppendPrologue(wire.AppendHandshake(nil, subject), "")
	for _, o := range outputs {
		b = wire.AppendOutput(b, c, o)
	}
	return wire.AppendSentinel(wire.AppendFinal(b, c))
}

// The reference's own streams, byte for byte.
func TestGoldenStreams(t *testing.T) {
	got := captures(t)
	token := func(id uint32) wire.Output { return wire.Output{Token: id, HasToken: true} }
	with := func(o wire.Output, u wire.Usage) wire.Output {
		o.Usage = &u
		return o
	}
	length := wire.Output{Finish: "length"}
	for name, want := range map[string][]byte{
		"vllm": answer("a0d9c69f-77e0-4dd4-b753-fb484c47d718", wire.MessagePack, with(token(1726), wire.Usage{Prompt: 11, Answer: 1}),
			token(1369), token(1987), token(1939), token(1193), with(length, wire.Usage{Prompt: 11, Answer: 5})),
		"json": answer("2bcda3b9-8ab7-4466-989f-fc78baad6cef", wire.JSON, with(token(1344), wire.Usage{Prompt: 10, Answer: 1}),
			token(1616), with(length, wire.Usage{Prompt: 10, Answer: 2})),
		"rejected": answer("a4b4c5c0-8446-4139-98d1-373d5937b1a1", wire.JSON, wire.Output{Failure: "request rejected: request exceeds worker admission limits"}),
		"sglang": answer("e322506d-a394-407f-aef8-39d34f0933f5", wire.MessagePack, token(60), token(1675), token(1446), token(1217), token(62),
			token(1749), token(1630), token(1108), token(1140), token(1123), length),
		"invalid": wire.AppendSentinel(wire.AppendFinal(wire.AppendInvalid(wire.AppendPrologue(wire.AppendHandshake(nil,
			"57c94724-e3b9-4e6f-9bc2-a3021bbc837b"), ""), wire.MessagePack, "max_output_tokens must be specified for mocker",
			"`max_output_tokens` (or `max_tokens`) is required by the mocker worker"), wire.MessagePack)),
	} {
		if !bytes.Equal(got[name], want) {
			t.Errorf("%s:\n%s", name, cmp.Diff(frames(t, got[name]), frames(t, want)))
		}
	}
}

// frames are the parts of a stream, as text.
func frames(t *testing.T, b []byte) (list []string) {
	t.Helper()
	for r := bytes.NewReader(b); ; {
		header, data, err := wire.ReadTwoPart(r)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				list = append(list, err.Error())
			}
			return list
		}
		list = append(list, string(header)+"|"+hex.EncodeToString(data))
	}
}

// The reference's own requests.
func TestGoldenRequests(t *testing.T) {
	r := bufio.NewReader(bytes.NewReader(captures(t)["requests"]))
	n := 0
	for ; ; n++ {
		q, err := wire.ReadRequest(r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if q.Path != q.Headers["x-endpoint-path"] || q.Headers["request-id"] == "" {
			t.Errorf("%+v", q)
		}
		header, data, err := wire.SplitTwoPart(q.Payload)
		if err != nil {
			t.Fatal(err)
		}
		c, err := wire.ParseControl(header)
		if err != nil || c.ID != q.Headers["request-id"] || c.Codec != wire.MessagePack || c.Address != "192.0.2.2:36825" || c.Subject == "" {
			t.Errorf("%v, %+v", err, c)
		}
		p, err := wire.DecodePreprocessed(c.Codec, data)
		if err != nil || p.Model == "" || len(p.TokenIDs) == 0 || p.MaxTokens == nil || p.Rank == nil || p.Bootstrap != nil {
			t.Errorf("%v, %+v", err, p)
		}
	}
	if n == 0 {
		t.Error("no requests")
	}
}

func TestDecodePreprocessed(t *testing.T) {
	p, err := wire.DecodePreprocessed(wire.JSON, []byte(`{"model":"m","token_ids":[1,4294967295],"stop_conditions":{"max_tokens":7,"stop":["x"]},"annotations":["a:b","output_replay_id:k"],"bootstrap_info":{},"new":1}`))
	if err != nil || len(p.TokenIDs) != 2 || *p.MaxTokens != 7 || p.Rank != nil || p.Bootstrap == nil {
		t.Errorf("%v, %+v", err, p)
	}
	if v, ok := p.Annotation("output_replay_id:"); v != "k" || !ok {
		t.Errorf("%q", v)
	}
	// {"token_ids": bin 8}: the other spelling.
	p, err = wire.DecodePreprocessed(wire.MessagePack, append([]byte("\x81\xa9token_ids\xc4\x08"), 1, 0, 0, 0, 0, 1, 0, 0))
	if err != nil || !cmp.Equal(p.TokenIDs, []uint32{1, 256}) {
		t.Errorf("%v, %+v", err, p)
	}
	for _, bad := range []string{"\x81\xa9token_ids\xc4\x03abc", "\x81\xa9token_ids\xdd\xff\xff\xff\xff\x01", "\x80", "\x81\xa5model\x01", ""} {
		if _, err := wire.DecodePreprocessed(wire.MessagePack, []byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

func TestBadFrames(t *testing.T) {
	for name, b := range map[string]string{
		"cut": "\x00\x03ab", "headers": "\x00\x00\x00\x01{\x00\x00\x00\x00", "huge": "\x00\x00\x00\x00\xff\xff\xff\xff",
	} {
		if _, err := wire.ReadRequest(bufio.NewReader(bytes.NewReader([]byte(b)))); err == nil || errors.Is(err, io.EOF) && name != "cut" {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, b := range []string{"", "{}", `{"connection_info":{"transport":"quic","info":"{\"address\":\"a\",\"subject\":\"b\"}"}}`, `{"payload_codec":"xml","connection_info":{"transport":"tcp_server","info":"{\"address\":\"a\",\"subject\":\"b\"}"}}`} {
		if _, err := wire.ParseControl([]byte(b)); err == nil {
			t.Errorf("%q is read", b)
		}
	}
	for _, b := range []string{"short", string(make([]byte, 23)), string(append(make([]byte, 7), append([]byte{9}, make([]byte, 16)...)...))} {
		if _, _, err := wire.SplitTwoPart([]byte(b)); err == nil {
			t.Errorf("%q is read", b)
		}
	}
}

func TestRequestRoundTrip(t *testing.T) {
	q := wire.Request{Path: "a/b", Headers: map[string]string{"x": "y"}, Payload: bytes.Repeat([]byte("z"), 200_000)}
	b, err := wire.AppendRequest(nil, q)
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.ReadRequest(bufio.NewReader(bytes.NewReader(b)))
	if err != nil || !cmp.Equal(got, q) {
		t.Errorf("%v", err)
	}
}

func FuzzReadRequest(f *testing.F) {
	b := captures(f)["requests"]
	f.Add(b[:min(len(b), 2000)])
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			q, err := wire.ReadRequest(r)
			if err != nil {
				return
			}
			header, data, err := wire.SplitTwoPart(q.Payload)
			if err != nil {
				continue
			}
			if c, err := wire.ParseControl(header); err == nil {
				_, _ = wire.DecodePreprocessed(c.Codec, data)
				_, _ = wire.DecodeKVQuery(c.Codec, data)
			}
		}
	})
}

// FuzzPayload reads what comes over NATS, where there is no frame around it.
func FuzzPayload(f *testing.F) {
	f.Add(wire.AppendTwoPart(nil, []byte(`{"id":"i","payload_codec":"msgpack","connection_info":{"transport":"tcp_server","info":"{\"address\":\"a:1\",\"subject\":\"s\"}"}}`), []byte("\x81\xa9token_ids\x91\x01")))
	f.Fuzz(func(t *testing.T, b []byte) {
		header, data, err := wire.SplitTwoPart(b)
		if err != nil {
			return
		}
		if len(header)+len(data)+24 != len(b) {
			t.Errorf("%d and %d of %d bytes", len(header), len(data), len(b))
		}
		c, err := wire.ParseControl(header)
		if err != nil {
			return
		}
		if c.Address == "" || c.Subject == "" || c.Codec != wire.JSON && c.Codec != wire.MessagePack {
			t.Errorf("%+v", c)
		}
		_, _ = wire.DecodePreprocessed(c.Codec, data)
		_, _ = wire.DecodeKVQuery(c.Codec, data)
	})
}

func FuzzDecodePreprocessed(f *testing.F) {
	f.Add([]byte("\x82\xa9token_ids\x92\x01\x02\xafstop_conditions\x81\xaamax_tokens\x05"), true)
	f.Add([]byte(`{"token_ids":[1],"routing":{"dp_rank":1},"annotations":["a"]}`), false)
	f.Fuzz(func(t *testing.T, b []byte, packed bool) {
		c := wire.JSON
		if packed {
			c = wire.MessagePack
		}
		if p, err := wire.DecodePreprocessed(c, b); err == nil && p.TokenIDs == nil {
			t.Error("no token ids")
		}
		_, _ = wire.DecodeKVQuery(c, b)
	})
}

func FuzzReadTwoPart(f *testing.F) {
	f.Add(wire.AppendTwoPart(nil, []byte(`"kill"`), nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			header, _, err := wire.ReadTwoPart(r)
			if err != nil {
				return
			}
			_ = wire.ParseWord(header)
		}
	})
}
