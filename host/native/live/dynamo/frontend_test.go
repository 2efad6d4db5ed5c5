package dynamo_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/bus"
	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/host/native/live/events"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/internal/stand"
)

// way is how a frontend and workers come together.
type way struct {
	env  []string              // of a frontend
	with func(*dynamo.Options) // what workers need
	etcd *stand.Server         // nil: records are files
	nats *stand.Server         // nil: requests by TCP, events by ZeroMQ
}

// files is file discovery, TCP and ZeroMQ.
func files(t *testing.T) way {
	root := t.TempDir()
	return way{
		env:  []string{"DYN_DISCOVERY_BACKEND=file", "DYN_FILE_KV=" + root},
		with: func(o *dynamo.Options) { o.Root = root },
	}
}

// leaseTTL is that of the workers, shorter than usual. The frontend, which ends with
// its lease, has the usual one.
const leaseTTL = 6 * time.Second

// servers is etcd, and NATS for requests and events.
func servers(t *testing.T) way {
	w := way{etcd: stand.Etcd(t), nats: stand.NATS(t)}
	w.env = []string{
		"DYN_DISCOVERY_BACKEND=etcd", "ETCD_ENDPOINTS=http://" + w.etcd.Address, "NATS_SERVER=nats://" + w.nats.Address,
		"DYN_REQUEST_PLANE=nats", "DYN_EVENT_PLANE=nats",
	}
	w.with = func(o *dynamo.Options) {
		log := slog.New(slog.NewTextHandler(t.Output(), nil))
		conn, err := bus.Connect(t.Context(), bus.Options{Servers: "nats://" + w.nats.Address}, log.Warn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		if o.Store, err = discovery.OpenEtcd(t.Context(), discovery.EtcdOptions{Endpoints: []string{"http://" + w.etcd.Address}, TTL: leaseTTL}, log.Warn); err != nil {
			t.Fatal(err)
		}
		if o.Requests, err = plane.OverNATS(conn, o.Namespace, o.Component, "1.6.1", log); err != nil {
			t.Fatal(err)
		}
		o.Events, o.Log = events.OverNATS(conn, log.Warn), log
	}
	return w
}

// An unchanged frontend serves our workers, however they come together: whole and
// streamed, with the KV router and in turn, four workers with two ranks each; what
// is cached is found; a client that goes frees its slot; workers that leave are not
// asked any more.
func TestFrontend(t *testing.T) {
	for name, open := range map[string]func(*testing.T) way{"files": files, "servers": servers} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			kv, turn := stand.NewFrontend(t, "kv", w.env...), stand.NewFrontend(t, "round-robin", w.env...)
			path := stand.Model(t, "../card/testdata/model")
			site, _ := start(t, func(o *dynamo.Options) {
				w.with(o)
				o.Workers, o.Engine.DPSize, o.Engine.BlockSize, o.Model.Path, o.System = 4, 2, 16, path, "127.0.0.1:0"
				o.Health = dynamo.Health{HealthPath: "/health", Living: "/live"}
			})
			for _, f := range []*stand.Frontend{kv, turn} {
				f.Model("m1", true)
			}
			checkAnswers(t, kv, turn)
			if n := workersAsked(t, site); n != 4 {
				t.Errorf("%d workers were asked", n)
			}
			site.Close()
			for _, f := range []*stand.Frontend{kv, turn} {
				f.Model("m1", false)
			}
			site, _ = start(t, func(o *dynamo.Options) {
				slow(o)
				w.with(o)
				o.Model = card.Model{Name: "m1", Path: path}
				o.Engine.Backend, o.Codec = config.TRTLLM, "json"
			})
			kv.Model("m1", true)
			checkCancel(t, kv)
			site.Close()
		})
	}
}

// checkAnswers asks both frontends in all ways.
func checkAnswers(t *testing.T, kv, turn *stand.Frontend) {
	t.Helper()
	prompt := strings.Repeat("Some prompt or other. ", 20)
	body := `{"model":"m1","max_tokens":5,"prompt":"` + prompt + `"}`
	for i := range 6 {
		status, c := kv.Ask(body)
		cached := 0
		if i > 0 {
			cached = len(prompt) / 16 * 16
		}
		if status != 200 || len(c.Choices) != 1 || len(strings.Fields(c.Choices[0].Text)) != 5 || c.Choices[0].Finish != "length" || c.Usage.Prompt != len(prompt) || c.Usage.Answer != 5 || c.Usage.Details.Cached != cached {
			t.Fatalf("request %d: status %d, %+v", i, status, c)
		}
		time.Sleep(stand.Pause)
	}
	for range 8 {
		if status, c := turn.Ask(body); status != 200 || c.Usage.Answer != 5 {
			t.Fatalf("in turn: status %d, %+v", status, c)
		}
	}
	if status, c := kv.Ask(`{"model":"m1","prompt":"a"}`); status != 400 || !strings.Contains(c.Message, "is required by the mocker worker") {
		t.Errorf("without a length: status %d, %+v", status, c)
	}
	if status, _ := kv.Ask(`{"model":"m1","max_tokens":5,"prompt":"` + strings.Repeat("a", 17_000) + `"}`); status != 500 {
		t.Errorf("a prompt that is too long: status %d", status)
	}
	for _, f := range []*stand.Frontend{kv, turn} {
		if n, complete := stand.Pieces(t, f.Stream(stand.Soon(t), `{"model":"m1","max_tokens":7,"prompt":"a","stream":true}`), " w"); n != 7 || !complete {
			t.Errorf("a stream of %d pieces, complete: %v", n, complete)
		}
	}
}

// workersAsked counts the workers that have had a request for tokens.
func workersAsked(t *testing.T, site *dynamo.Site) int {
	t.Helper()
	resp, err := http.Get("http://" + site.System() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return len(regexp.MustCompile(`(?m)^dynamo_component_requests_total\{.*dynamo_endpoint="generate".*\} [1-9]`).FindAll(text, -1))
}

// checkCancel has one slot, in real time: a client that goes gives it back.
func checkCancel(t *testing.T, f *stand.Frontend) {
	t.Helper()
	ctx, cancel := context.WithCancel(stand.Soon(t))
	defer cancel()
	long := f.Stream(ctx, `{"model":"m1","max_tokens":100000,"prompt":"a","stream":true}`)
	if _, err := long.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	_ = long.Close()
	if status, c := f.Ask(`{"model":"m1","max_tokens":2,"prompt":"b"}`); status != 200 || c.Usage.Answer != 2 {
		t.Errorf("after a client has gone: status %d, %+v", status, c)
	}
}
