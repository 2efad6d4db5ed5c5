package dynamo_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/handoff"
	"github.com/dryserve/dryserve/internal/stand"
)

// sourceScripts are what sources do, by what happens; each hangs up in the end.
func sourceScripts() map[string][]act {
	do := func(id uint64, a handoff.Action) handoff.Message {
		return handoff.Message{Kind: handoff.Do, ID: id, Action: a, Handoff: besideID()}
	}
	met, complete := handoff.Message{Kind: handoff.Registered}, handoff.Message{Kind: handoff.Complete}
	held := handoff.Message{Kind: handoff.Held, Handoff: besideID(), Timing: handoff.Timing{PromptTokens: 150}}
	stranger := do(1, handoff.Reserve)
	stranger.Handoff = handoff.UUID{7}
	say := func(m ...handoff.Message) act { return act{say: m} }
	after := func(hear int, m ...handoff.Message) act { return act{hear: hear, say: m} }
	room := say(met, held, do(1, handoff.Reserve))
	return map[string][]act{
		"all goes well":          {room, after(2, do(3, handoff.Activate)), after(1, complete)},
		"it leaves at once":      {},
		"it leaves after a word": {say(met)},
		"it leaves with room":    {room, after(2)},
		"it gives up":            {say(met, handoff.Message{Kind: handoff.Abort, Text: "because"})},
		"it gives up with room":  {room, after(2, handoff.Message{Kind: handoff.Abort, Text: "because"})},
		"it has too many":        {say(handoff.Message{Kind: handoff.Overloaded})},
		"it finds a fault":       {say(handoff.Message{Kind: handoff.ProtocolError, Text: "so"})},
		"it is out of place":     {say(complete)},
		"it registers":           {say(met, met)},
		"nothing to activate":    {say(met, do(3, handoff.Activate)), after(1)},
		"room twice":             {room, after(2, do(1, handoff.Reserve)), after(1, do(2, handoff.Reserve)), after(1)},
		"room given back":        {room, after(2, do(2, handoff.Cancel)), after(1)},
		"another handoff":        {say(met, stranger), after(1)},
		"no JSON":                {say(met), {raw: "\x01\x00\x00\x00x"}},
		"too long a frame":       {say(met), {raw: "\x01\x00\x01\x00"}},
	}
}

// A worker of ours that decodes and the reference's say the same to sources that do
// the same, well or badly, and to who has asked them.
func TestTargetBesideReference(t *testing.T) {
	path := stand.Model(t, "../card/testdata/model")
	for engine, backend := range map[string]config.Backend{"vllm": config.VLLM, "sglang": config.SGLang} {
		root := t.TempDir()
		reference(t, root, "beside", path, "m1", "--disaggregation-mode", "decode", "--engine-type", engine)
		s, o := start(t, func(o *dynamo.Options) {
			decode(o)
			o.Engine.Backend, o.Engine.BlockSize, o.Model = backend, 16, card.Model{Name: "m1", Path: path}
		})
		var tcp []string
		stand.Until(t, "the reference's worker", func() bool {
			files, _ := filepath.Glob(filepath.Join(root, "v1/instances/*generate*"))
			if len(files) != 1 {
				return false
			}
			text, _ := os.ReadFile(files[0])
			tcp = regexp.MustCompile(`"tcp":"([^/"]+)/([^"]+)"`).FindStringSubmatch(string(text))
			return tcp != nil
		})
		n := byte(0)
		for what, script := range sourceScripts() {
			beside(t, engine+", "+what, &n, func() (theirs, ours []string) {
				return besideSource(t, besideFrontend(t, tcp[1], n), tcp[2], n, script),
					besideSource(t, besideFrontend(t, s.Address(), n), endpoint(t, o.Root, "generate"), n, script)
			})
		}
	}
}

// A source that leaves before it has said that all is done takes the answer with
// it, though that has begun; so does the reference's, unless the answer is quicker.
func TestSourceLeaves(t *testing.T) {
	s, o := start(t, func(o *dynamo.Options) {
		decode(o)
		slow(o)
	})
	f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	m := sourceScripts()["all goes well"]
	m[len(m)-1].say = nil
	got := besideSource(t, f, path, 1, m)
	last := got[len(got)-2:]
	if !strings.Contains(last[0], `"finish_reason":{"error":"destination handoff ended before completion"}`) || last[1] != `{"complete_final":true}` {
		t.Errorf("%q", got)
	}
	f.ask(path, `{"token_ids":[1],"stop_conditions":{"max_tokens":2}}`) // in the only slot
	if got := f.accept().all(); len(got) != 4 {
		t.Errorf("%q", got)
	}
}

// besideSource lets a source play its script and returns what it heard, and what
// the request was answered, but for the tokens' ids.
func besideSource(t *testing.T, f *frontend, path string, n byte, script []act) (said []string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_ = l.(*net.TCPListener).SetDeadline(time.Now().Add(stand.Long))
	prompt := strings.Repeat(fmt.Sprintf("%d,", n), 149) + "1"
	id := besideID()
	id[14] = n
	f.ask(path, `{"model":"m1","token_ids":[`+prompt+`],"stop_conditions":{"max_tokens":100},"sampling_options":{},"output_options":{},"eos_token_ids":[],"mdc_sum":null,"annotations":[],"router_config_override":null,`+
		fmt.Sprintf(`"bootstrap_info":{"bootstrap_host":"127.0.0.1","bootstrap_port":%d,"bootstrap_room":5,"handoff_id":"%s"}}`, l.Addr().(*net.TCPAddr).Port, id))
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(stand.Long))
	if err := handoff.ReadHello(conn); err != nil {
		t.Fatal(err)
	}
	var whole handoff.Identity
	hear := func() bool {
		i, m, err := handoff.ReadFrame(conn)
		if err != nil {
			said = append(said, "the connection ends")
			return false
		}
		whole = i
		said = append(said, string(handoff.AppendFrame(nil, i, m)[4:]))
		return true
	}
	hear()
	ok := true
	for _, a := range script {
		for range a.hear {
			ok = ok && hear()
		}
		b := []byte(a.raw)
		for _, m := range a.say {
			if m.Handoff == besideID() {
				m.Handoff = id
			}
			b = handoff.AppendFrame(b, whole, m)
		}
		if ok && len(b) > 0 {
			_, _ = conn.Write(b)
		}
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	stream := f.called()
	said = append(said, stream.header())
	for _, item := range stream.all() {
		if item = tokenID.ReplaceAllString(item, `"token_ids":[T]`); item != said[len(said)-1] { // however many there are
			said = append(said, item)
		}
	}
	return said
}
