// Package fault is what goes wrong on purpose, for authors of clients.
//
// It owns which request meets which faults, by lots that follow from a seed and
// from the request's number alone, and the limit on requests per second. It does
// not own how a fault looks to a client (live/openai).
//
// Invariants: equal seeds give request number n equal faults, whatever the time
// and the other requests; without faults asked for, nothing is drawn.
package fault

import (
	"math"
	"sync"
	"time"

	"github.com/dryserve/dryserve/core/rng"
)

// Options say what goes wrong. Rates are chances from 0 to 1.
type Options struct {
	Seed           uint64
	Jitter         time.Duration // each token is late by up to this
	ErrorRate      float64       // the request is refused
	ErrorStatus    int           // with this status
	StallRate      float64       // the answer pauses
	Stall          time.Duration // for so long
	DisconnectRate float64       // the connection breaks
	RateLimit      float64       // requests per second; 0: no limit
}

// Any reports whether anything is asked for.
func (o Options) Any() bool {
	return o.Jitter > 0 || o.ErrorRate > 0 || o.StallRate > 0 || o.DisconnectRate > 0 || o.RateLimit > 0
}

// Source gives requests their faults. Take it from New.
type Source struct {
	o   Options
	any bool

	mu      sync.Mutex
	count   uint64
	tokens  float64 // of the bucket that RateLimit fills
	filled  time.Time
	started bool
}

// New returns a source.
func New(o Options) *Source { return &Source{o: o, any: o.Any()} }

// Plan is what one request meets. The zero Plan is a smooth one.
type Plan struct {
	Wait       time.Duration // too many requests: come again after this
	Status     int           // refuse it with this status, 0: do not
	Stall      time.Duration // pause, 0: do not
	StallAt    float64       // when so much of the answer has gone, 0 to 1
	Disconnect bool
	BreakAt    float64 // as StallAt

	jitter time.Duration
	lots   rng.Wyrand
}

// Next is the plan of the next request, which came at a time.
func (s *Source) Next(now time.Time) Plan {
	if !s.any {
		return Plan{}
	}
	s.mu.Lock()
	n := s.count
	s.count++
	wait := s.limit(now)
	s.mu.Unlock()
	if wait > 0 {
		return Plan{Wait: wait}
	}
	return s.o.plan(n)
}

// plan draws the faults of request n, always as many lots.
func (o Options) plan(n uint64) Plan {
	p := Plan{jitter: o.Jitter, lots: rng.Wyrand(mix(o.Seed, n))}
	if p.lots.Float64() < o.ErrorRate {
		p.Status = o.ErrorStatus
	}
	if p.lots.Float64() < o.StallRate {
		p.Stall = o.Stall
	}
	p.StallAt = p.lots.Float64()
	p.Disconnect = p.lots.Float64() < o.DisconnectRate
	p.BreakAt = p.lots.Float64()
	return p
}

// mix makes a seed of two numbers.
func mix(a, b uint64) uint64 {
	x := rng.Wyrand(a)
	y := rng.Wyrand(x.Uint64() ^ b)
	return y.Uint64()
}

// limit takes one token out of the bucket, which holds those of a second, and at
// least one. It returns how long there is none.
func (s *Source) limit(now time.Time) time.Duration {
	if s.o.RateLimit <= 0 {
		return 0
	}
	size := math.Max(s.o.RateLimit, 1)
	if !s.started {
		s.started, s.tokens, s.filled = true, size, now
	}
	if passed := now.Sub(s.filled).Seconds(); passed > 0 {
		s.tokens = math.Min(size, s.tokens+passed*s.o.RateLimit)
		s.filled = now
	}
	if s.tokens < 1 {
		return time.Duration(math.Ceil((1 - s.tokens) / s.o.RateLimit * 1e9))
	}
	s.tokens--
	return 0
}

// Rough reports whether anything of an answer is held up or broken.
func (p *Plan) Rough() bool { return p.jitter > 0 || p.Stall > 0 || p.Disconnect }

// Jitter is how late the next token is.
func (p *Plan) Jitter() time.Duration {
	if p.jitter <= 0 {
		return 0
	}
	return time.Duration(p.lots.Float64() * float64(p.jitter))
}
