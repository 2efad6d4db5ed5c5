package dynamo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dryserve/dryserve/host/native/live/dynamo"
	"github.com/dryserve/dryserve/internal/stand"
)

// Whatever fails around workers and comes back, the workers are there again: a
// frontend, NATS, etcd, even with all that etcd had kept lost.
func TestOutages(t *testing.T) {
	w := servers(t)
	path := stand.Model(t, "../card/testdata/model")
	start(t, func(o *dynamo.Options) {
		w.with(o)
		o.Engine.BlockSize, o.Model.Path, o.Engine.MaxNumSeqs, o.Engine.SpeedupRatio = 16, path, 1, 1
		slowly := *o
		slow(&slowly)
		o.Engine.Timing = slowly.Engine.Timing // a millisecond a token
	})
	f := stand.NewFrontend(t, "kv", w.env...)
	f.Model("m1", true)
	prompts := 0
	// served: an answer comes, and what it has left in the cache is found.
	served := func(after string) {
		t.Helper()
		prompts++
		body := `{"model":"m1","max_tokens":2,"prompt":"` + strings.Repeat(string(rune('a'+prompts)), 64) + `"}`
		stand.Until(t, "an answer after "+after, func() bool { status, _ := f.Ask(body); return status == 200 })
		time.Sleep(stand.Pause)
		if status, c := f.Ask(body); status != 200 || c.Usage.Details.Cached != 48 {
			t.Errorf("after %s: status %d, %+v", after, status, c)
		}
	}
	served("the start")

	// The frontend dies with a request under way, whose only slot is free then.
	long := f.Stream(stand.Soon(t), `{"model":"m1","max_tokens":100000,"prompt":"a","stream":true}`)
	if _, err := long.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	f.Kill()
	_ = long.Close()
	f.Start()
	f.Model("m1", true)
	served("a dead frontend")

	// NATS is away for a while. What is under way has its own connection.
	ctx, cancel := context.WithCancel(stand.Soon(t))
	defer cancel()
	under := f.Stream(ctx, `{"model":"m1","max_tokens":2500,"prompt":"a","stream":true}`)
	w.nats.Stop()
	if n, complete := stand.Pieces(t, under, " w"); n != 2500 || !complete {
		t.Errorf("without NATS: %d pieces, complete: %v", n, complete)
	}
	w.nats.Start()
	served("NATS was away")

	// etcd is away for less than a lease lives: nobody notices.
	w.etcd.Kill() // it takes its time to stop by itself
	served("etcd went")
	w.etcd.Start()
	time.Sleep(leaseTTL + leaseTTL/2)
	f.Model("m1", true)
	served("etcd was away")

	// etcd loses everything. The frontend ends then, as it always does when its lease
	// is lost; the workers do not, and are recorded again.
	w.etcd.Kill()
	w.etcd.Forget()
	w.etcd.Start()
	f.Stop()
	f.Start()
	f.Model("m1", true)
	served("etcd lost everything")
}
