package fleet_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/engine"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/fleet"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// fixed is an engine whose prompts take 10 ms and whose steps take 2.
func fixed() config.Engine {
	cfg := config.Defaults(config.VLLM)
	cfg.BlockSize, cfg.NumGPUBlocks = 4, 64
	cfg.Timing = config.Timing{Kind: config.Fixed, PrefillMs: 10, DecodeMs: 2}
	return cfg
}

// sink keeps what a request is told.
type sink struct {
	mu     sync.Mutex
	tokens int
	cached int
	end    worker.End
	done   chan struct{}
}

func (s *sink) Signal(x worker.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.Token {
		s.tokens++
	}
	if x.First {
		s.cached = x.Cached
	}
	if s.end = x.End; x.End != worker.Running {
		close(s.done)
	}
}

// now is what is known of the request so far.
func (s *sink) now() (tokens int, end worker.End) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tokens, s.end
}

// rig is a running fleet that notes which worker got how many requests.
type rig struct {
	*fleet.Fleet
	t     *testing.T
	mu    sync.Mutex
	taken []int // requests, by worker
	n     int
	stop  func()
}

type counter struct {
	r *rig
	i int
}

func (c counter) Passed(int, *engine.Out, float64) {}
func (c counter) Commanded(int, *engine.Effects, engine.Metrics, float64) {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	c.r.taken[c.i]++
}

func start(t *testing.T, o fleet.Options) *rig {
	r := &rig{t: t, taken: make([]int, o.Workers)}
	o.Clock = clock.NewWall(false)
	o.Observer = func(i int) worker.Observer { return counter{r, i} }
	o.Warn = func(text string, args ...any) { t.Errorf("%s %v", text, args) }
	r.Fleet = fleet.New(o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { r.Run(ctx); close(done) }()
	r.stop = func() { cancel(); <-done }
	return r
}

// ask brings a request whose prompt begins with the token that is asked for.
func (r *rig) ask(first uint32, prompt, output int) (*fleet.Job, *sink) {
	r.n++
	q := fleet.Request{MaxOutput: output}
	binary.BigEndian.PutUint64(q.UUID[8:], uint64(r.n))
	for i := range prompt {
		q.Tokens = append(q.Tokens, first+uint32(i))
	}
	s := &sink{done: make(chan struct{})}
	j, err := r.Submit(q, s)
	if err != nil {
		r.t.Fatal(err)
	}
	return j, s
}

func (r *rig) counts() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.taken)
}

func TestModes(t *testing.T) {
	for mode, want := range map[fleet.Mode]string{
		fleet.RoundRobin: "[4 4 4]", fleet.Random: "[5 3 4]", fleet.PowerOfTwo: "[3 4 5]", fleet.LeastLoaded: "[4 4 4]",
	} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, fleet.Options{Engine: fixed(), Workers: 3, Mode: mode, Seed: 1})
			defer r.stop()
			for i := range 12 {
				r.ask(uint32(100*i), 8, 50)
			}
			time.Sleep(20 * time.Millisecond)
			if got := r.counts(); got != want {
				t.Errorf("%s: %s requests, want %s", fleet.Modes()[mode], got, want)
			}
		})
	}
}

// What ended or was cancelled is no load any more.
func TestLoadFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed()
		cfg.MaxNumSeqs = 1
		r := start(t, fleet.Options{Engine: cfg, Workers: 2, Mode: fleet.LeastLoaded})
		defer r.stop()
		r.ask(100, 8, 200) // keeps one of them busy
		for i := range uint32(10) {
			_, a := r.ask(1000+i*100, 8, 1)
			time.Sleep(20 * time.Millisecond)
			j, b := r.ask(5000+i*100, 8, 100)
			time.Sleep(20 * time.Millisecond)
			j.Cancel()
			j.Cancel()
			time.Sleep(20 * time.Millisecond)
			_, end := a.now()
			if tokens, _ := b.now(); end != worker.Completed || tokens == 0 {
				t.Fatalf("round %d waits for the busy worker: end %d, %d tokens", i, end, tokens)
			}
		}
	})
}

// Requests that come together are in one pass of each worker; the router says
// where it has put them.
func TestTogether(t *testing.T) {
	for mode, want := range map[fleet.Mode]string{fleet.RoundRobin: "[3 2]", fleet.KV: "[2 3]"} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, fleet.Options{Engine: fixed(), Workers: 2, Mode: mode, Router: config.DefaultRouter(), Seed: 3})
			defer r.stop()
			var list []fleet.Request
			var sinks []worker.Sink
			for i := range byte(5) {
				list = append(list, fleet.Request{UUID: [16]byte{i + 1}, Tokens: []uint32{uint32(i), 1, 2, 3}, MaxOutput: 1})
				sinks = append(sinks, &sink{done: make(chan struct{})})
			}
			began := time.Now()
			jobs, err := r.SubmitAll(list, sinks)
			if err != nil {
				t.Fatal(err)
			}
			on := [2]int{}
			for i, s := range sinks {
				<-s.(*sink).done
				if p, placed := jobs[i].Placement(); placed != (mode == fleet.KV) {
					t.Errorf("request %d: %+v, %v", i, p, placed)
				} else if placed {
					on[p.Worker]++
				}
			}
			if took := time.Since(began).Round(time.Millisecond); took != 10*time.Millisecond {
				t.Errorf("%s: it took %v", fleet.Modes()[mode], took)
			}
			if got := r.counts(); got != want || mode == fleet.KV && fmt.Sprint(on) != want {
				t.Errorf("%s: %s requests, %v", fleet.Modes()[mode], got, on)
			}
		})
	}
}

// With KV routing a repeated prompt goes where it is cached, and says so.
func TestKV(t *testing.T) {
	for _, backend := range []config.Backend{config.VLLM, config.SGLang} {
		synctest.Test(t, func(t *testing.T) {
			cfg := fixed()
			cfg.Backend = backend
			r := start(t, fleet.Options{Engine: cfg, Workers: 4, Mode: fleet.KV, Router: config.DefaultRouter(), Seed: 7})
			defer r.stop()
			var want string
			for i := range 5 {
				_, s := r.ask(100, 41, 3)
				<-s.done
				cached := 0
				if i > 0 {
					cached = 40
				}
				if s.tokens != 3 || s.cached != cached || s.end != worker.Completed {
					t.Errorf("repetition %d: %d tokens, %d cached, end %d", i, s.tokens, s.cached, s.end)
				}
				time.Sleep(time.Second)
				want = r.counts()
			}
			if want != "[5 0 0 0]" && want != "[0 5 0 0]" && want != "[0 0 5 0]" && want != "[0 0 0 5]" {
				t.Errorf("%s requests", want)
			}
		})
	}
}

// A router with a threshold keeps requests; one of them can be cancelled, the
// others come when there is room.
func TestWaitsAtRouter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := fixed()
		cfg.MaxNumBatchedTokens = 40
		rc := config.DefaultRouter()
		rc.QueueThreshold = 0
		r := start(t, fleet.Options{Engine: cfg, Workers: 1, Mode: fleet.KV, Router: rc})
		defer r.stop()
		_, a := r.ask(100, 40, 2)
		_, b := r.ask(200, 40, 1)
		j, c := r.ask(300, 40, 1)
		_, d := r.ask(400, 40, 1)
		if got := r.counts(); got != "[1]" {
			t.Errorf("%s requests at once", got)
		}
		j.Cancel()
		<-a.done
		<-b.done
		<-d.done
		got := r.counts()
		if tokens, end := c.now(); got != "[3]" || end != worker.Running || tokens != 0 {
			t.Errorf("%s requests; the cancelled one: %d tokens, end %d", got, tokens, end)
		}
	})
}

// Workers serve from their launch on, and work once they are up.
func TestStagger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, fleet.Options{Engine: fixed(), Workers: 3, StaggerMs: 100, StartupMs: 1000})
		defer r.stop()
		began := time.Now()
		_, a := r.ask(100, 8, 1)
		_, b := r.ask(200, 8, 1)
		time.Sleep(250 * time.Millisecond)
		_, c := r.ask(300, 8, 1)
		if r.Launched() != 3 {
			t.Errorf("%d are launched", r.Launched())
		}
		<-a.done
		<-b.done
		<-c.done
		if got := r.counts(); got != "[2 1 0]" {
			t.Errorf("%s requests", got)
		}
		if took := time.Since(began).Round(time.Millisecond); took != 1110*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// When the fleet ends, so do its requests.
func TestStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, fleet.Options{Engine: fixed(), Workers: 40, StaggerMs: 1000})
		_, a := r.ask(100, 8, 1000)
		time.Sleep(20 * time.Millisecond)
		r.stop()
		<-a.done
		_, b := r.ask(200, 8, 1)
		<-b.done
		if a.end != worker.Closed || b.end != worker.Closed {
			t.Errorf("ends %d, %d", a.end, b.end)
		}
	})
}

// With a load model the router reckons that prompts get done as a grid says, not
// only when they are: a worker is free for the next before it has said so.
func TestPredictedLoad(t *testing.T) {
	for predicts, want := range map[bool]string{false: "[1 2]", true: "[2 1]"} {
		synctest.Test(t, func(t *testing.T) {
			e := fixed()
			e.NumGPUBlocks, e.Timing.PrefillMs, e.SpeedupRatio = 1000, 5000, 1
			rc := config.DefaultRouter()
			rc.TrackActiveBlocks, rc.LoadModel = false, config.PredictedLoad
			o := fleet.Options{Engine: e, Workers: 2, Mode: fleet.KV, Router: rc, Seed: 1}
			if predicts {
				// Long prompts take 10 ms, short ones a second.
				o.Prompts = &config.GridTable{
					PrefillBatch: []float64{1, 2}, PrefillISL: []float64{40, 400}, PrefillPrefix: []float64{0, 1000}, PrefillMs: []float64{1000, 1000, 10, 10, 1000, 1000, 10, 10},
					DecodeBatch: []float64{1, 2}, DecodeContext: []float64{1, 2}, DecodeMs: []float64{1, 1, 1, 1},
				}
				if f := o.Prompts.Check(); !f.OK() {
					t.Fatal(f)
				}
			}
			r := start(t, o)
			defer r.stop()
			r.ask(1000, 400, 1)
			before := r.counts()
			r.ask(2000, 40, 1)
			time.Sleep(50 * time.Millisecond)
			r.ask(3000, 40, 1)
			time.Sleep(20 * time.Second) // a request enters between two passes
			got := r.counts()
			if before == "[0 1]" { // whichever was first
				got = "[" + got[3:4] + " " + got[1:2] + "]"
			}
			if got != want {
				t.Errorf("predictions %v: %s, want %s", predicts, got, want)
			}
		})
	}
}
