package queue

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// limited is a class with limits on requests, tokens and cached tokens.
func limited(policy config.QueuePolicy, quantum, requests, tokens, cached int64) config.PolicyClass {
	return config.PolicyClass{Queue: policy, Quantum: quantum, MaxRequests: requests, MaxTokens: tokens, MaxCached: cached}
}

// goldenClasses are the classes of the profile in queue.json.
func goldenClasses() []config.PolicyClass {
	return []config.PolicyClass{
		limited(config.QueueFCFS, 1000, none, none, none),
		limited(config.QueueWSPT, 500, 3, none, none),
		limited(config.QueueFCFS, 250, none, none, none),
		limited(config.QueueFCFS, 100, none, 6000, 2000),
		limited(config.QueueFCFS, 4000, none, none, none),
	}
}

const none = config.NoLimit

// The reference's queue, step by step.
func TestGoldenQueue(t *testing.T) {
	text, err := os.ReadFile("../../testdata/router/queue.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Profile string
			Steps   []struct {
				Op      string
				Secs    float64 `json:"arrival_offset_secs"`
				Cached  uint64  `json:"cached_tokens"`
				Tokens  uint64  `json:"isl_tokens"`
				Cost    uint64  `json:"cost_tokens"`
				Class   int32
				ID      int32
				Jump    float64 `json:"priority_jump"`
				Strict  uint32  `json:"strict_priority"`
				Workers int     `json:"worker_count"`
				Result  goldenResult

				Blocked []int `json:"blocked_classes"`
				Popped  *int32
				Pending int
			}
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	single := map[string]config.QueuePolicy{"synthetic fcfs": config.QueueFCFS, "synthetic wspt": config.QueueWSPT, "synthetic lcfs": config.QueueLCFS}
	steps, full := 0, 0
	for _, c := range file.Cases {
		classes := goldenClasses()
		if policy, ok := single[c.Profile]; ok {
			classes = []config.PolicyClass{limited(policy, 1, none, none, none)}
		}
		q := New(classes)
		for _, s := range c.Steps {
			steps++
			switch s.Op {
			case "enqueue":
				r := Request{s.ID, s.Class, s.Tokens, s.Cached, s.Jump, s.Strict, s.Secs}
				if r.Cost() != s.Cost {
					t.Errorf("%+v costs %d", s, r.Cost())
				}
				_, f := q.Push(r, s.Workers)
				if f.Limit != Free {
					full++
				}
				if f.Limit == Free && !s.Result.ok || f.Limit != Free && s.Result != rejection(f) {
					t.Errorf("%+v: %+v", s, f)
				}
			case "pop":
				blocked := make([]bool, len(classes))
				for _, k := range s.Blocked {
					blocked[k] = true
				}
				r, ok := q.Pop(blocked)
				if ok != (s.Popped != nil) || ok && r.Tag != *s.Popped {
					t.Errorf("case %s, step %d: %v, %v, want %v", c.Profile, steps, r.Tag, ok, s.Popped)
				}
			}
			if q.Len() != s.Pending {
				t.Fatalf("%+v: %d wait", s, q.Len())
			}
		}
	}
	if steps != 1026 {
		t.Errorf("%d steps, want 1026", steps)
	}
	if full != 28 {
		t.Errorf("%d requests met a limit, want 28", full)
	}
}

// goldenResult is "ok" or a rejection.
type goldenResult struct {
	ok      bool
	Current uint64
	Limit   uint64
	Kind    string `json:"limit_kind"`
	Class   string `json:"policy_class"`
}

func (r *goldenResult) UnmarshalJSON(text []byte) error {
	if r.ok = string(text) == `"ok"`; r.ok {
		return nil
	}
	type plain goldenResult
	return json.Unmarshal(text, &struct{ Rejected *plain }{(*plain)(r)})
}

func rejection(f Full) goldenResult {
	names := []string{"interactive-warm", "interactive-cold", "batch-warm", "batch-cold", "vip"}
	kinds := []string{Requests: "requests", Tokens: "raw_isl_tokens", Cached: "cached_tokens"}
	return goldenResult{Current: f.Have, Limit: f.Most, Kind: kinds[f.Limit], Class: names[f.Class]}
}

// naive is the queue of router notes §6 as it stands there: lists, looked
// through one by one, and one round of spending after the other.
type naive struct {
	classes  []config.PolicyClass
	waiting  [][]naiveItem
	deficits []uint64
	cursor   int
	carry    int
	next     int
}

type naiveItem struct {
	Request
	order int
}

func (n *naive) push(r Request, ranks uint64) Limit {
	c := n.classes[r.Class]
	var tokens, cached uint64
	for _, w := range n.waiting[r.Class] {
		tokens += w.Tokens
		cached += w.Cached
	}
	switch {
	case c.MaxRequests >= 0 && uint64(len(n.waiting[r.Class])) >= uint64(c.MaxRequests)*ranks:
		return Requests
	case c.MaxTokens >= 0 && tokens >= uint64(c.MaxTokens)*ranks:
		return Tokens
	case c.MaxCached >= 0 && cached >= uint64(c.MaxCached)*ranks:
		return Cached
	}
	n.waiting[r.Class] = append(n.waiting[r.Class], naiveItem{r, n.next})
	n.next++
	return Free
}

// first is the place of a class's first request.
func (n *naive) first(k int) int {
	list := n.waiting[k]
	score := func(x naiveItem) float64 {
		jump := max(0, x.Jump)
		switch n.classes[k].Queue {
		case config.QueueLCFS:
			return jump + x.Secs
		case config.QueueWSPT:
			return (1 + jump) / float64(x.Cost())
		}
		return jump - x.Secs
	}
	best := 0
	for i, x := range list {
		b := list[best]
		if x.Strict > b.Strict || x.Strict == b.Strict && (score(x) > score(b) || score(x) == score(b) && x.order < b.order) {
			best = i
		}
	}
	return best
}

func (n *naive) pop(blocked []bool) (Request, bool) {
	carry := n.carry
	n.carry = -1
	if n.len() == 0 {
		return Request{}, false
	}
	affordable := func(k int) bool { return n.waiting[k][n.first(k)].Cost() <= n.deficits[k] }
	if carry >= 0 {
		if len(n.waiting[carry]) == 0 {
			n.deficits[carry] = 0
		} else if !blocked[carry] && affordable(carry) {
			return n.take(carry), true
		}
	}
	for round := 0; ; round++ {
		any := false
		for i := range n.classes {
			k := (n.cursor + i) % len(n.classes)
			if len(n.waiting[k]) == 0 {
				if round == 0 {
					n.deficits[k] = 0
				}
				continue
			}
			if blocked[k] {
				continue
			}
			any = true
			if round == 0 {
				if affordable(k) {
					return n.take(k), true
				}
				n.deficits[k] += uint64(n.classes[k].Quantum)
				if affordable(k) {
					return n.take(k), true
				}
			}
		}
		if !any {
			return Request{}, false
		}
		if round == 0 {
			continue
		}
		// Later rounds give to all before one is taken.
		found := -1
		for i := range n.classes {
			if k := (n.cursor + i) % len(n.classes); len(n.waiting[k]) > 0 && !blocked[k] {
				n.deficits[k] += uint64(n.classes[k].Quantum)
				if found < 0 && affordable(k) {
					found = k
				}
			}
		}
		if found >= 0 {
			return n.take(found), true
		}
	}
}

func (n *naive) take(k int) Request {
	n.cursor = (k + 1) % len(n.classes)
	i := n.first(k)
	r := n.waiting[k][i].Request
	n.waiting[k] = slices.Delete(n.waiting[k], i, i+1)
	n.deficits[k] -= r.Cost()
	if len(n.waiting[k]) == 0 {
		n.deficits[k] = 0
	} else if n.deficits[k] > 0 {
		n.carry = k
	}
	return r
}

func (n *naive) len() (sum int) {
	for _, w := range n.waiting {
		sum += len(w)
	}
	return sum
}

type dice struct{ data []byte }

func (d *dice) roll(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return int(b) % n
}

// play runs a queue and the model side by side.
func play(t *testing.T, data []byte) {
	d := &dice{data}
	limit := func() int64 {
		if d.roll(3) > 0 {
			return none
		}
		return int64(d.roll(200))
	}
	classes := make([]config.PolicyClass, 1+d.roll(4))
	for i := range classes {
		classes[i] = limited(config.QueuePolicy(d.roll(3)), 1+int64(d.roll(200)), limit(), limit(), limit())
	}
	q := New(classes)
	n := &naive{classes: classes, waiting: make([][]naiveItem, len(classes)), deficits: make([]uint64, len(classes)), carry: -1}
	items := map[int32]Item{}
	tag := int32(0)
	for len(d.data) > 0 {
		switch k := d.roll(10); {
		case k < 5:
			tag++
			r := Request{Tag: tag, Class: int32(d.roll(len(classes))), Tokens: uint64(d.roll(250)) * uint64(1+d.roll(9)), Cached: uint64(d.roll(250)),
				Jump: float64(d.roll(5) - 2), Strict: uint32(d.roll(6) / 4), Secs: float64(d.roll(20)) / 4}
			ranks := d.roll(4)
			id, full := q.Push(r, ranks)
			if want := n.push(r, uint64(ranks)); full.Limit != want {
				t.Fatalf("push %+v: %+v, want limit %d", r, full, want)
			}
			if full.Limit == Free {
				items[tag] = id
			}
		case k == 5 && n.len() > 0:
			k := d.roll(len(classes))
			for len(n.waiting[k]) == 0 {
				k = (k + 1) % len(classes)
			}
			i := d.roll(len(n.waiting[k]))
			r := n.waiting[k][i].Request
			n.waiting[k] = slices.Delete(n.waiting[k], i, i+1)
			if got := *q.Request(items[r.Tag]); got != r {
				t.Fatalf("request %d is %+v, want %+v", r.Tag, got, r)
			}
			if got := q.Remove(items[r.Tag]); got != r {
				t.Fatalf("removed %+v, want %+v", got, r)
			}
		default:
			blocked := make([]bool, len(classes))
			for i := range blocked {
				blocked[i] = d.roll(4) == 0
			}
			got, ok := q.Pop(blocked)
			want, wantOK := n.pop(blocked)
			if ok != wantOK || got != want {
				t.Fatalf("pop: %+v %v, want %+v %v", got, ok, want, wantOK)
			}
		}
		for i, w := range n.waiting {
			if q.ClassLen(int32(i)) != len(w) || q.classes[i].deficit != n.deficits[i] {
				t.Fatalf("class %d: %d wait with %d to spend, want %d, %d", i, q.ClassLen(int32(i)), q.classes[i].deficit, len(w), n.deficits[i])
			}
		}
	}
	for q.Len() > 0 {
		got, _ := q.Pop(nil)
		if want, _ := n.pop(make([]bool, len(classes))); got != want {
			t.Fatalf("pop: %+v, want %+v", got, want)
		}
	}
	for i := range q.classes {
		if c := q.classes[i]; c.tokens != 0 || c.cached != 0 {
			t.Fatalf("class %d keeps %d tokens, %d cached", i, c.tokens, c.cached)
		}
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte("requests of several classes that wait for their turns"))
	f.Fuzz(play)
}

func TestRandomQueues(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for range 2000 {
		data := make([]byte, 100+r.IntN(1500))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		play(t, data)
	}
}

func TestWarmQueueAllocatesNothing(t *testing.T) {
	q := New(goldenClasses())
	round := func() {
		for i := range 200 {
			q.Push(Request{Class: int32(i % 5), Tokens: uint64(i * 37 % 900), Secs: float64(i)}, 100)
		}
		for q.Len() > 0 {
			q.Pop(nil)
		}
	}
	round()
	if n := testing.AllocsPerRun(5, round); n != 0 {
		t.Errorf("%v allocations per round", n)
	}
}
