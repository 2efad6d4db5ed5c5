package clock_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dryserve/dryserve/host/native/live/clock"
)

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := clock.NewWall(false)
		w := c.Waiter()
		wake := make(chan struct{}, 1)
		if w.Until(0, wake) || c.NowMs() != 0 {
			t.Error("it waits for what is past")
		}
		if w.Until(2.5, wake) || c.NowMs() < 2.5 || c.NowMs() > 2.51 {
			t.Errorf("at 2.5 it is %v", c.NowMs())
		}
		go func() {
			time.Sleep(time.Second)
			wake <- struct{}{}
		}()
		if !w.Until(math.Inf(1), wake) || math.Abs(c.NowMs()-1002.5) > 0.01 {
			t.Errorf("woken at %v", c.NowMs())
		}
		if w.Until(c.NowMs()+1, wake) {
			t.Error("woken without reason")
		}
	})
}

// With the system's own sleep a wait does not end early either, and can be
// ended.
func TestPrecise(t *testing.T) {
	c := clock.NewWall(true)
	w := c.Waiter()
	for _, d := range []float64{0.1, 1, 3} {
		until := c.NowMs() + d
		if w.Until(until, nil) || c.NowMs() < until {
			t.Errorf("it waits for less than %v ms", d)
		}
	}
	wake := make(chan struct{}, 1)
	wake <- struct{}{}
	if !w.Until(math.Inf(1), wake) {
		t.Error("it is not woken")
	}
}
