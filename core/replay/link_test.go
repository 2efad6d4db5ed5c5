package replay

import (
	"math"
	"math/rand"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// flow is a transfer of a naive link.
type flow struct {
	link   [2]int32
	leftMs float64 // that it would take alone
	endMs  float64
}

// TestLinksAgainstNaive: transfers that begin at random end when a model that
// carries the rest of each from event to event says, and none of the time of a
// link is lost.
func TestLinksAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	for i := range 400 {
		l := links{sharing: config.SharedByPair, perNode: 2}
		if i%2 == 1 {
			l.sharing = config.SharedByNode
		}
		var flows []flow
		var begun []int32
		nowMs, nextBegin := 0.0, 0.0
		advance := func(toMs float64) {
			for _, at := range begun {
				n := 0
				for _, o := range begun {
					if flows[o].link == flows[at].link {
						n++
					}
				}
				flows[at].leftMs -= (toMs - nowMs) / float64(n)
			}
			nowMs = toMs
		}
		for want := 30; len(flows) < want || len(begun) > 0; {
			next := l.nextMs()
			if len(flows) < want {
				next = min(next, nextBegin)
			}
			if next < nowMs {
				t.Fatalf("case %d: from %v back to %v", i, nowMs, next)
			}
			advance(next)
			for _, e := range l.take(nowMs) {
				f := &flows[e.turn]
				if math.Abs(f.leftMs) > 1e-6 || f.endMs != 0 {
					t.Fatalf("case %d: a transfer with %v ms to go ends", i, f.leftMs)
				}
				f.endMs = nowMs
				for k, at := range begun {
					if at == e.turn {
						begun = append(begun[:k], begun[k+1:]...)
						break
					}
				}
			}
			if len(flows) < want && nowMs == nextBegin {
				source, target := int32(r.Intn(3)), int32(r.Intn(2))
				f := flow{link: [2]int32{source, target}, leftMs: float64(1+r.Intn(40)) / 4}
				if l.sharing == config.SharedByNode {
					f.link = [2]int32{source / 2, 0}
				}
				n := int32(len(flows))
				flows, begun = append(flows, f), append(begun, n)
				l.add(source, target, nowMs, f.leftMs, n, n)
				nextBegin += float64(r.Intn(30)) / 4
			}
			for _, at := range begun {
				if flows[at].leftMs < -1e-6 {
					t.Fatalf("case %d: a transfer is late by %v ms", i, -flows[at].leftMs)
				}
			}
		}
		if len(l.busy) != 0 {
			t.Fatalf("case %d: %d links are busy for ever", i, len(l.busy))
		}
	}
}
