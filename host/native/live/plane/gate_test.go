package plane

import (
	"slices"
	"sync"
	"testing"
)

// So many run, as many wait and one more; who waits has its turn in order.
func TestGate(t *testing.T) {
	g := gate{run: 2, wait: 1}
	var order []int
	var mu sync.Mutex
	var all sync.WaitGroup
	began, end := make(chan int, 10), make(chan struct{})
	enter := func(n int) bool {
		all.Add(1)
		ok := g.enter(func() {
			defer all.Done()
			mu.Lock()
			order = append(order, n)
			mu.Unlock()
			began <- n
			<-end
		})
		if !ok {
			all.Done()
		}
		return ok
	}
	for n, want := range []bool{true, true, true, true, false, false} {
		if got := enter(n); got != want {
			t.Errorf("request %d is let in: %v", n, got)
		}
	}
	<-began
	<-began
	end <- struct{}{}
	if n := <-began; n != 2 {
		t.Errorf("request %d is the third", n)
	}
	if !enter(6) || enter(7) {
		t.Error("a place in the queue is not given again, or twice")
	}
	close(end)
	all.Wait()
	slices.Sort(order[:2])
	if !slices.Equal(order[:3], []int{0, 1, 2}) || len(order) != 5 {
		t.Errorf("%v", order)
	}
	for n := range 3 { // empty again
		if !enter(n) {
			t.Error("the gate stays shut")
		}
	}
	all.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) != 0 {
		t.Errorf("%d wait", len(g.queue))
	}
}
