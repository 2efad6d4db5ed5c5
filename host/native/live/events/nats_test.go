package events

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/routerwire"
)

// server keeps what is published, unless it is down or does not read.
type server struct {
	mu   sync.Mutex
	got  []*nats.Msg
	down bool
	read chan struct{} // not nil: nothing is read until it is closed
}

func (s *server) PublishMsg(m *nats.Msg) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("down")
	}
	if s.read != nil {
		<-s.read
	}
	s.got = append(s.got, m)
	return nil
}

// The reference's own messages over NATS, byte for byte.
func TestGoldenSubjects(t *testing.T) {
	text, err := os.ReadFile("testdata/nats.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	s := &server{}
	n := OverNATS(s, func(text string, args ...any) { t.Error(text, args) })
	e := card.Endpoint{Namespace: "dynamo", Component: "backend", Name: "generate", Instance: 0x7d7ba227b60a9705}
	open := func(topic string, id uint64, ms int64, sequence uint64) *Publisher {
		p, err := n.Open(e, topic, id)
		if err != nil {
			t.Fatal(err)
		}
		p.now, p.sequence = func() time.Time { return time.UnixMilli(ms) }, sequence
		return p
	}
	used := uint64(0)
	const at = 1795962586495
	NewMarks(open(TopicRequests, 0xbb303e8cbd3c8, at, 0), e.Instance).Prefilled("084fe471-6aa6-48e6-8bac-0e64f40f9a24", 0)
	for _, err := range []error{
		open(TopicCache, 0x1ff5c3cc3ac339, at, 0).Send([]routerwire.RouterEvent{{WorkerID: e.Instance, Tier: routerwire.Device, Residency: "worker", Event: routerwire.CacheEvent{
			ID: 1, Data: routerwire.EventData{Stored: &routerwire.StoredBlocks{Blocks: []routerwire.StoredBlock{
				{Block: 0xc8157603968ac557, Tokens: 0xc8157603968ac557}, {Block: 0x8da912ba6fd30959, Tokens: 0xc8157603968ac557}}}},
		}}}),
		open(TopicLoad, 0x12b5583f26ec90, at+3, 0).Send(routerwire.ActiveLoad{WorkerID: e.Instance, UsedBlocks: &used}),
		open(TopicPasses, 0xd74b11a696b26, at+1001, 15).Send(forwardPass{Version: 1, Worker: fmt.Sprint(e.Instance), Counter: 16}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	for range 3000 {
		s.mu.Lock()
		done := len(s.got) == 4 // marks take a millisecond
		s.mu.Unlock()
		if done {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	n.Close()
	got := map[string]string{}
	for _, m := range s.got {
		got[m.Subject] = hex.EncodeToString(m.Data)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-reference +ours):\n%s", d)
	}
}

// A server that does not read, or is not there, holds up nobody and costs bounded
// memory; what comes later comes.
func TestStuckNATS(t *testing.T) {
	s := &server{read: make(chan struct{})}
	var warned []string
	n := OverNATS(s, func(text string, _ ...any) { warned = append(warned, text) })
	p, _ := n.Open(card.Endpoint{Namespace: "a", Component: "b", Name: "c"}, "t", 1)
	const sent = mostWaiting + 5000
	for range sent {
		if err := p.Send(1); err != nil {
			t.Fatal(err)
		}
	}
	n.mu.Lock()
	waiting := len(n.waiting)
	n.mu.Unlock()
	if waiting != mostWaiting || len(warned) != 1 {
		t.Errorf("%d messages wait; warnings %q", waiting, warned)
	}
	close(s.read)
	n.Close()
	if len(s.got) < mostWaiting || len(s.got) >= sent || s.got[0].Subject != "namespace.a.component.b.endpoint.c.t" {
		t.Errorf("%d of %d messages", len(s.got), sent)
	}
	// Numbers tell a reader that something was lost.
	var e envelope
	if err := routerwire.Unmarshal(s.got[len(s.got)-1].Data, &e); err != nil || e.Sequence < mostWaiting-1 {
		t.Errorf("%v: %+v", err, e)
	}
	warned = nil
	s = &server{down: true}
	n = OverNATS(s, func(text string, _ ...any) { warned = append(warned, text) })
	p, _ = n.Open(card.Endpoint{}, "t", 1)
	for range 3 {
		_ = p.Send(1)
	}
	n.Close()
	_ = p.Send(1) // too late, and no harm
	if len(warned) == 0 || len(s.got) > 0 {
		t.Errorf("%d messages; warnings %q", len(s.got), warned)
	}
}
