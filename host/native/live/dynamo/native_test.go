package dynamo_test

import (
	"bufio"
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/seq"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/meter"
	"github.com/dryserve/dryserve/host/native/routerwire"
	"github.com/dryserve/dryserve/internal/stand"
)

// A client with libzmq hears what a rank's cache stores, in vLLM's words, and gets
// it again when it asks; blocks have the names that routers know.
func TestNativeEvents(t *testing.T) {
	python := stand.Python(t)
	if out, err := exec.Command(python, "-c", "import zmq").CombinedOutput(); err != nil {
		t.Skipf("there is no pyzmq: %s", out)
	}
	ports := [2]int{consecutive(t), consecutive(t)}
	s, o := start(t, func(o *dynamo.Options) {
		o.Engine.DPSize, o.Engine.BlockSize = 2, 4
		o.Native = dynamo.Native{Bind: "127.0.0.1", Ports: ports[:1], Replays: ports[1:]}
	})
	cmd := exec.CommandContext(stand.Soon(t), python, "testdata/subscribe.py", strconv.Itoa(ports[0]+1), strconv.Itoa(ports[1]+1), "3")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("it says %q", lines.Text())
	}
	stand.Until(t, "a subscriber", func() bool { return s.Heard(0, 1) }) // its subscription is under way
	f, path := newFrontend(t, s.Address()), endpoint(t, o.Root, "generate")
	for _, body := range []string{
		`{"token_ids":[1,2,3,4,5,6,7,8,9],"stop_conditions":{"max_tokens":1},"routing":{"dp_rank":1}}`,
		`{"token_ids":[1,2,3,4],"stop_conditions":{"max_tokens":1},"routing":{"dp_rank":0}}`, // another rank
		`{"token_ids":[1,2,3,4,5,6,7,8,1,1,1,1],"stop_conditions":{"max_tokens":1},"routing":{"dp_rank":1}}`,
		`{"token_ids":[7,7,7,7,7],"stop_conditions":{"max_tokens":1},"routing":{"dp_rank":1}}`,
	} {
		f.ask(path, body)
		if got := f.accept().all(); len(got) != 3 {
			t.Fatalf("%q", got)
		}
	}
	said := map[string][]string{}
	for lines.Scan() {
		kind, rest, _ := strings.Cut(lines.Text(), " ")
		said[kind] = append(said[kind], rest)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	heard := said["heard"]
	if len(heard) != 3 || !slices.Equal(said["asked"], heard) || !slices.Equal(said["first"], heard[1:2]) {
		t.Fatalf("%q", said)
	}
	type stored struct {
		Type      string   `msgpack:"type"`
		Blocks    []uint64 `msgpack:"block_hashes"`
		Parent    *uint64  `msgpack:"parent_block_hash"`
		Tokens    []uint32 `msgpack:"token_ids"`
		BlockSize int      `msgpack:"block_size"`
		Group     int      `msgpack:"group_idx"`
	}
	for i, tokens := range [][]uint32{{1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1}, {7, 7, 7, 7}} {
		number, digits, _ := strings.Cut(heard[i], " ")
		payload, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		var b struct {
			//lint:ignore U1000 msgpack reads its tag
			_msgpack struct{} `msgpack:",as_array"`
			At       float64
			Events   []stored
			Rank     int
		}
		if err := routerwire.Unmarshal(payload, &b); err != nil {
			t.Fatal(err)
		}
		h := seq.Plain(4)
		whole := tokens
		if i == 1 {
			whole = append([]uint32{1, 2, 3, 4, 5, 6, 7, 8}, tokens...)
		}
		names := h.AppendChain(nil, h.AppendLocals(nil, whole, nil))
		if b.Rank != 1 || len(b.Events) != 1 || number != strings.Repeat("0", 15)+strconv.Itoa(i) {
			t.Fatalf("message %s: %+v", number, b)
		}
		e := b.Events[0]
		if e.Type != "BlockStored" || !slices.Equal(e.Tokens, tokens) || !slices.Equal(e.Blocks, names[len(names)-len(tokens)/4:]) || e.BlockSize != 4 || (e.Parent != nil) != (i == 1) || i == 1 && *e.Parent != names[1] {
			t.Errorf("message %d: %+v, the names are %x", i, e, names)
		}
	}
}

// consecutive is the first of two free ports.
func consecutive(t *testing.T) int {
	t.Helper()
	for range 100 {
		if p := stand.Port(t); p < 65535 && free(p+1) {
			return p
		}
	}
	t.Fatal("there are no two free ports beside each other")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

// A worker whose port is taken is not brought up, and one that decodes has none.
func TestNativePortTaken(t *testing.T) {
	port := consecutive(t)
	_, o := start(t, func(o *dynamo.Options) {
		o.Native = dynamo.Native{Bind: "127.0.0.1", Ports: []int{port}}
	})
	o.Meter = meter.New(o.Engine.Backend, 1, 1)
	if _, err := dynamo.Start(o); err == nil || !strings.HasPrefix(err.Error(), "events of a cache cannot be published at 127.0.0.1:"+strconv.Itoa(port)+": ") {
		t.Error(err)
	}
	o.Engine.Role, o.Meter = config.Decode, meter.New(o.Engine.Backend, 1, 1)
	s, err := dynamo.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
