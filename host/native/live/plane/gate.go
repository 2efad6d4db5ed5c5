package plane

import "sync"

// Usual limits of a server: requests that are answered, and that wait.
const (
	UsualRunning = 10_000
	UsualWaiting = 40_000
)

// gate lets some requests run and lets others wait, first come, first served.
type gate struct {
	run, wait int

	mu      sync.Mutex
	running int
	queue   []func()
	refused int64
}

// Crowd is how full a server is: requests that are answered and that wait, how many
// there may be of each, and how many were refused.
type Crowd struct {
	Running, MayRun, Waiting, MayWait int
	Refused                           int64
}

func (g *gate) crowd() Crowd {
	g.mu.Lock()
	defer g.mu.Unlock()
	return Crowd{g.running, g.run, len(g.queue), g.wait, g.refused}
}

// enter runs f beside others, now or when its turn comes. It is false if there are
// too many.
func (g *gate) enter(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.running < g.run:
		g.running++
		go g.serve(f)
	case len(g.queue) <= g.wait:
		g.queue = append(g.queue, f)
	default:
		g.refused++
		return false
	}
	return true
}

// serve runs f, and those whose turn it is afterwards.
func (g *gate) serve(f func()) {
	for f != nil {
		f()
		g.mu.Lock()
		if f = nil; len(g.queue) > 0 {
			f = g.queue[0]
			g.queue[0] = nil
			g.queue = g.queue[1:]
		} else {
			g.running--
		}
		g.mu.Unlock()
	}
}
