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
