package sweep

import (
	"context"
	"fmt"
	"sync"
)

// Result is the outcome of a task, or an error that is none of the point's:
// another run may go better.
type Result struct {
	Task    int
	Outcome *Outcome
	Err     error
}

// waiting is how many results may wait to be kept before a processor waits for
// that: a disk takes as long for one of them as for many.
const waiting = 256

// Run does n tasks, so many at a time, begun in their order. keep is given the
// results that have come while it kept those before, in the order of their
// ends; its error ends the run. When ctx ends, tasks under way are given up, and
// keep has been given all others.
func Run(ctx context.Context, n, jobs int, do func(ctx context.Context, task int) (*Outcome, error), keep func([]Result) error) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks, results := make(chan int), make(chan Result, waiting)
	var workers sync.WaitGroup
	for range jobs {
		workers.Go(func() {
			for i := range tasks {
				o, err := guarded(inner, i, do)
				if err == nil || inner.Err() == nil {
					results <- Result{i, o, err}
				}
			}
		})
	}
	go func() {
		for i := 0; i < n && inner.Err() == nil; i++ {
			select {
			case tasks <- i:
			case <-inner.Done():
			}
		}
		close(tasks)
		workers.Wait()
		close(results)
	}()
	var failed error
	for r := range results {
		batch := []Result{r}
		for len(results) > 0 {
			batch = append(batch, <-results)
		}
		if failed == nil {
			if failed = keep(batch); failed != nil {
				cancel()
			}
		}
	}
	if failed != nil {
		return failed
	}
	return ctx.Err()
}

// guarded turns a panic into an error, so that one point is not the end of the
// others.
func guarded(ctx context.Context, i int, do func(context.Context, int) (*Outcome, error)) (o *Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the simulation has failed, which is a fault of this program: %v", p)
		}
	}()
	return do(ctx, i)
}
