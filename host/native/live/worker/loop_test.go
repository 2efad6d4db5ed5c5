package worker_test

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/live/clock"
	"github.com/dryserve/dryserve/host/native/live/worker"
)

// timed is a sink that looks at a clock.
type timed struct {
	clock clock.Clock
	mu    sync.Mutex
	atMs  []float64 // of tokens
	late  []float64 // ms, of tokens behind the model's time
	last  worker.Signal
	end   chan struct{}
}

func newTimed(c clock.Clock) *timed { return &timed{clock: c, end: make(chan struct{})} }

func (s *timed) Signal(x worker.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.Token {
		now := s.clock.NowMs()
		s.atMs, s.late = append(s.atMs, now), append(s.late, now-x.AtMs)
	}
	if s.last = x; x.End != worker.Running {
		close(s.end)
	}
}

func (s *timed) times() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.atMs)
}

// A loop gives tokens as time passes, and ends its requests when it ends.
func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewWall(false)
		l := worker.NewLoop(worker.New(fixed(), 0, worker.Options{ReadyMs: 3}), c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.Run(ctx); close(done) }()

		a := newTimed(c)
		l.Submit(ask(1, 8, 3), a)
		<-a.end
		got := a.times()
		for i, want := range []float64{13, 15, 17} {
			if len(got) != 3 || math.Abs(got[i]-want) > 1e-5 { // timers have whole ns
				t.Fatalf("tokens at %v", got)
			}
		}

		b := newTimed(c)
		job := l.Submit(ask(2, 8, 30), b)
		time.Sleep(15 * time.Millisecond)
		job.Cancel()
		time.Sleep(time.Second)
		job.Cancel()
		if got := b.times(); len(got) != 3 {
			t.Errorf("cancelled: tokens at %v", got)
		}

		d := newTimed(c)
		l.Submit(ask(3, 8, 1000), d)
		time.Sleep(20 * time.Millisecond)
		cancel()
		<-done
		late := newTimed(c)
		l.Submit(ask(4, 8, 1), late)
		<-d.end
		<-late.end
		if d.last.End != worker.Closed || late.last.End != worker.Closed || len(d.times()) == 0 {
			t.Errorf("at the end: %+v, %+v", d.last, late.last)
		}
	})
}

// Whoever asks when a loop has said everything hears of a pass when all of its
// requests have ended.
func TestLoopRested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewWall(false)
		l := worker.NewLoop(worker.New(fixed(), 0, worker.Options{}), c)
		var mu sync.Mutex
		var sinks []*timed
		var jobs []*worker.Job
		for i := range 5 {
			s := newTimed(c)
			sinks, jobs = append(sinks, s), append(jobs, l.NewJob(ask(i+1, 8, 2), s))
		}
		var counts []int
		l.Rested = func() {
			n := 0
			for _, s := range sinks {
				s.mu.Lock()
				if s.last.End == worker.Completed {
					n++
				}
				s.mu.Unlock()
			}
			mu.Lock()
			defer mu.Unlock()
			counts = append(counts, n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.Run(ctx); close(done) }()
		l.SubmitAll(jobs...)
		for _, s := range sinks {
			<-s.end
		}
		synctest.Wait()
		cancel()
		<-done
		if all := slices.Compact(counts); !slices.Equal(all, []int{0, 5}) {
			t.Errorf("so many had ended whenever the loop rested: %v", all)
		}
	})
}

// A request counts from when it came, if the worker was idle; but no pass begins
// before the one ahead of it has ended.
func TestLoopCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewWall(false)
		l := worker.NewLoop(worker.New(fixed(), 0, worker.Options{}), c)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { l.Run(ctx); close(done) }()
		time.Sleep(20 * time.Millisecond)
		for _, x := range []struct{ cameMs, firstMs float64 }{{16, 26}, {17, 36}, {100, 46}} {
			q, s := ask(int(x.cameMs), 8, 1), newTimed(c)
			q.CameMs = x.cameMs
			l.Submit(q, s)
			<-s.end
			if at := s.times(); len(at) != 1 || math.Abs(at[0]-x.firstMs) > 1e-5 {
				t.Errorf("a request of %v ms has its token at %v, want %v", x.cameMs, at, x.firstMs)
			}
		}
		cancel()
		<-done
	})
}

// Many at once: each request gets all its tokens and one end.
func TestLoopConcurrently(t *testing.T) {
	cfg := config.Defaults(config.VLLM)
	cfg.SpeedupRatio = 1e9
	c := clock.NewWall(true)
	l := worker.NewLoop(worker.New(cfg, 0, worker.Options{}), c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { l.Run(ctx); close(done) }()
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			for i := range 50 {
				s := newTimed(c)
				job := l.Submit(ask(g*1000+i+1, 100, 8), s)
				if i%5 == 4 {
					job.Cancel()
					continue
				}
				<-s.end
				if len(s.times()) != 8 || s.last.End != worker.Completed {
					t.Errorf("%d tokens, %+v", len(s.times()), s.last)
				}
			}
		})
	}
	all.Wait()
	cancel()
	<-done
}

// BenchmarkTrueTime plays the beginning of a trace in real time and reports by
// how many per cent the medians of TTFT and ITL differ from those of the same
// arrivals offline: stepped at exact times, which TestEqualsReplay holds against a
// replay.
func BenchmarkTrueTime(b *testing.B) {
	cfg := config.Defaults(config.VLLM)
	for b.Loop() {
		arrivals, _ := offline(b, cfg, 40)
		c := clock.NewWall(true)
		l := worker.NewLoop(worker.New(cfg, 0, worker.Options{}), c)
		ctx, cancel := context.WithCancel(b.Context())
		go l.Run(ctx)
		waiter, startMs := c.Waiter(), c.NowMs()+5
		sinks, cameMs := make([]*timed, len(arrivals)), make([]float64, len(arrivals))
		for i, a := range arrivals {
			waiter.Until(startMs+a.atMs, nil)
			sinks[i], cameMs[i] = newTimed(c), c.NowMs()
			l.Submit(worker.Request{UUID: uuid(i + 1), Tokens: a.prompt, MaxOutput: a.output}, sinks[i])
		}
		for i, s := range sinks {
			<-s.end
			arrivals[i].atMs = cameMs[i]
		}
		cancel()
		want := drive(b, cfg, arrivals, 0)
		var ttft, itl, wantTTFT, wantITL []float64
		for i, s := range sinks {
			at, r := s.times(), want[i]
			ttft, wantTTFT = append(ttft, at[0]-cameMs[i]), append(wantTTFT, r.firstMs-cameMs[i])
			itl = append(itl, (at[len(at)-1]-at[0])/float64(len(at)-1))
			wantITL = append(wantITL, (r.lastMs-r.firstMs)/float64(r.tokens-1))
		}
		b.ReportMetric(100*(median(ttft)/median(wantTTFT)-1), "%TTFT")
		b.ReportMetric(100*(median(itl)/median(wantITL)-1), "%ITL")
		var late []float64
		for _, s := range sinks {
			late = append(late, s.late...)
		}
		slices.Sort(late)
		b.ReportMetric(median(late), "ms-late")
		b.ReportMetric(late[len(late)*99/100], "ms-late-p99")
		b.ReportMetric(median(ttft), "msTTFT")
		b.ReportMetric(median(itl), "msITL")
	}
}

func median(x []float64) float64 {
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
