package dynamo_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/handoff"
	"github.com/dryserve/dryserve/internal/stand"
)

// act is what a destination does: it hears so many messages, and then says these,
// or writes bytes that are none.
type act struct {
	hear int
	say  []handoff.Message
	raw  string
}

// scripts are what destinations do, by what happens.
func scripts(order handoff.Order) map[string][]act {
	first, before := uint64(1), 3 // the reservation, and what is heard up to it
	if order == handoff.DestinationFirst {
		first, before = 0, 2
	}
	done := func(id uint64, w handoff.Word) handoff.Message {
		return handoff.Message{Kind: handoff.Done, ID: id, Outcome: handoff.Outcome{Word: w}}
	}
	failed := func(id uint64) handoff.Message {
		return handoff.Message{Kind: handoff.Done, ID: id, Outcome: handoff.Outcome{Word: handoff.Failed, Failure: "no"}}
	}
	room := handoff.Message{Kind: handoff.Reserved, Handoff: besideID(), Tokens: 160}
	say := func(hear int, m ...handoff.Message) act { return act{hear: hear, say: m} }
	upto := []act{say(before, done(first, handoff.Accepted), room)}
	activation := 1
	if order == handoff.DestinationFirst {
		activation = 2
	}
	m := map[string][]act{
		"all goes well":       append(upto, say(activation, done(3, handoff.Applied))),
		"room is refused":     {say(before, failed(first)), say(1, done(first+1+uint64(before-2), handoff.Applied))},
		"nothing to activate": append(upto, say(activation, done(3, handoff.Noop))),
		"activation fails":    append(upto, say(activation, failed(3)), say(1, done(5, handoff.Noop))),
		"it cannot be undone": append(upto, say(activation, failed(3)), say(1, failed(5))),
		"an unknown action":   {say(before, done(77, handoff.Accepted))},
		"the wrong outcome":   {say(before, done(first, handoff.Applied))},
		"two outcomes":        {say(before, done(first, handoff.Accepted), done(first, handoff.Applied))},
		"room too soon":       {say(before, room)},
		"it is given up":      {say(before, handoff.Message{Kind: handoff.Abort, Text: "because"})},
		"a fault":             {say(before, handoff.Message{Kind: handoff.ProtocolError, Text: "so"})},
		"too many":            {say(before, handoff.Message{Kind: handoff.Overloaded})},
		"out of place":        {say(before, handoff.Message{Kind: handoff.Complete})},
		"another handoff":     {say(before, handoff.Message{Kind: handoff.Reserved, Handoff: handoff.UUID{7}})},
		"no JSON":             {{hear: before, raw: "\x01\x00\x00\x00x"}},
		"an empty frame":      {{hear: before, raw: "\x00\x00\x00\x00"}},
		"too long a frame":    {{hear: before, raw: "\x01\x00\x01\x00"}},
	}
	return m
}

func besideID() handoff.UUID { return handoff.UUID{0: 0xab, 6: 0x40, 8: 0x80, 15: 1} }

// A worker of ours that computes prompts and the reference's say the same to
// destinations that do the same, well or badly, and to who has asked them.
func TestSourceBesideReference(t *testing.T) {
	path := stand.Model(t, "../card/testdata/model")
	for engine, backend := range map[string]config.Backend{"vllm": config.VLLM, "sglang": config.SGLang} {
		order, _, _ := handoff.OrderOf(backend)
		root, port := t.TempDir(), stand.Port(t)
		reference(t, root, "beside", path, "m1", "--disaggregation-mode", "prefill", "--engine-type", engine, "--bootstrap-ports", strconv.Itoa(port), "--kv-bytes-per-token", "1000")
		kvBytes, ourPort := uint64(1000), stand.Port(t)
		s, o := start(t, func(o *dynamo.Options) {
			prefill(o, ourPort)
			o.Engine.Backend, o.Engine.BlockSize, o.Model = backend, 16, card.Model{Name: "m1", Path: path}
			o.Handoff.Timing.BytesPerToken = &kvBytes
		})
		var record string
		stand.Until(t, "the reference's worker", func() bool {
			files, _ := filepath.Glob(filepath.Join(root, "v1/instances/*generate*"))
			if len(files) == 1 {
				text, err := os.ReadFile(files[0])
				record = string(text)
				return err == nil && reachable(port)
			}
			return false
		})
		tcp := regexp.MustCompile(`"tcp":"([^/"]+)/([^"]+)"`).FindStringSubmatch(record)
		if tcp == nil {
			t.Fatalf("the record is %s", record)
		}
		stand.Until(t, "the reference's handoffs", func() bool { return takesHandoffs(t, tcp[1], tcp[2], port, engine, order) })
		n := byte(0)
		for what, script := range scripts(order) {
			beside(t, engine+", "+what, &n, func() (theirs, ours []string) {
				return besideDialogue(t, besideFrontend(t, tcp[1], n), tcp[2], port, engine, order, n, script),
					besideDialogue(t, besideFrontend(t, s.Address(), n), endpoint(t, o.Root, "generate"), ourPort, engine, order, n, script)
			})
		}
	}
}

// beside plays a script with both. Several of the reference's tasks see that a handoff
// fails, and whose words are its answer differs from play to play, so the same has to
// be said in one of some plays; ours has to say the same in each. n is the number of a
// play, which no other has.
func beside(t *testing.T, what string, n *byte, play func() (theirs, ours []string)) {
	t.Helper()
	const plays = 10
	var d, first string
	for i := range plays {
		*n++
		theirs, ours := play()
		d = cmp.Diff(theirs, ours)
		numberless := playID.ReplaceAllString(strings.Join(ours, "\n"), "N")
		if i == 0 {
			first = numberless
		}
		if numberless != first {
			t.Errorf("%s: ours says now this, now that:\n%s", what, cmp.Diff(first, numberless))
		}
		if d == "" {
			return
		}
	}
	t.Errorf("%s, the last of %d plays (-reference +ours):\n%s", what, plays, d)
}

var playID = regexp.MustCompile(`(ab|00)000000-0000-4000-8000-[0-9a-f]+`)

// takesHandoffs is false while a worker of the reference listens already, but refuses
// every handoff as it has not set up who manages them. Once it does, the one that
// asked is given up.
func takesHandoffs(t *testing.T, address, path string, port int, engine string, order handoff.Order) bool {
	t.Helper()
	f, id := besideFrontend(t, address, 0), besideIdentity(t, 0)
	f.ask(path, prefillRequest(id, port, 0))
	if f.called().header() != `{"error":null}` {
		return false
	}
	conn := register(t, port, engine, order, id)
	if _, err := conn.Write(handoff.AppendFrame(nil, id, handoff.Message{Kind: handoff.Abort, Text: "ready"})); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn)
	return true
}

// besideFrontend asks with a request id that no other play has: the reference may not
// yet have forgotten that of the last one, and refuses it then.
func besideFrontend(t *testing.T, address string, n byte) *frontend {
	t.Helper()
	f := newFrontend(t, address)
	f.n = int(n)
	return f
}

// besideIdentity is of the handoff of play n, by besideFrontend's request.
func besideIdentity(t *testing.T, n byte) handoff.Identity {
	t.Helper()
	id := handoff.Identity{Handoff: besideID(), Room: 5}
	id.Handoff[14] = n
	if err := id.Request.UnmarshalText([]byte(requestID(int(n) + 1))); err != nil {
		t.Fatal(err)
	}
	return id
}

// register connects to a source as the destination of a handoff.
func register(t *testing.T, port int, engine string, order handoff.Order, id handoff.Identity) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(stand.Long))
	b := handoff.AppendFrame([]byte(handoff.Hello), id, handoff.Message{Kind: handoff.Register, Order: order, Engine: engine})
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
	return conn
}

// prefillRequest asks a source for a prompt that no other play has.
func prefillRequest(id handoff.Identity, port int, n byte) string {
	prompt := strings.Repeat(fmt.Sprintf("%d,", n), 149) + "1"
	return `{"model":"m1","token_ids":[` + prompt + `],"stop_conditions":{"max_tokens":1},"sampling_options":{},"output_options":{},"eos_token_ids":[],"mdc_sum":null,"annotations":[],"router_config_override":null,` +
		fmt.Sprintf(`"bootstrap_info":{"bootstrap_host":"127.0.0.1","bootstrap_port":%d,"bootstrap_room":%d,"handoff_id":"%s"}}`, port, id.Room, id.Handoff)
}

func reachable(port int) bool {
	c, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// besideDialogue lets a destination play its script and returns what it heard, and
// what the request was answered, but for the token's id.
func besideDialogue(t *testing.T, f *frontend, path string, port int, engine string, order handoff.Order, n byte, script []act) (said []string) {
	t.Helper()
	id := besideIdentity(t, n)
	conn := register(t, port, engine, order, id)
	defer conn.Close()
	f.ask(path, prefillRequest(id, port, n))
	hear := func() bool {
		_, m, err := handoff.ReadFrame(conn)
		if err != nil {
			return false
		}
		said = append(said, string(handoff.AppendFrame(nil, id, m)[4:]))
		return true
	}
	for _, a := range script {
		for range a.hear {
			if !hear() {
				return append(said, "the connection ends")
			}
		}
		b := []byte(a.raw)
		for _, m := range a.say {
			if m.Handoff == besideID() {
				m.Handoff = id.Handoff
			}
			b = handoff.AppendFrame(b, id, m)
		}
		if _, err := conn.Write(b); err != nil {
			return append(said, "nobody reads")
		}
	}
	for hear() {
	}
	_, _ = io.Copy(io.Discard, conn)
	for _, item := range f.accept().all() {
		said = append(said, tokenID.ReplaceAllString(item, `"token_ids":[T]`))
	}
	return said
}

var tokenID = regexp.MustCompile(`"token_ids":\[\d+\]`)
