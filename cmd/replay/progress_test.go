package main

import (
	"io"
	"os"
	"testing"
	"time"
)

// A bar may be driven past its end, backwards, through stages, and be stopped
// twice; it must come to an end.
func TestMeter(t *testing.T) {
	finished := make(chan bool)
	go func() {
		m := &meter{w: io.Discard, on: true}
		m.stop()
		for _, total := range []int64{10, -1, 0} {
			for _, stage := range []string{"Reading", "Simulating"} {
				m.update(stage, 0, total)
				m.since = m.since.Add(-2 * patience)
				for done := int64(0); done < 15; done++ {
					m.update(stage, done, total)
				}
				if m.bars == nil {
					t.Errorf("no bar for %s of %d", stage, total)
				}
				m.update(stage, 3, total)
			}
			m.stop()
			m.stop()
		}
		close(finished)
	}()
	select {
	case <-finished:
	case <-time.After(20 * time.Second):
		t.Fatal("the bar does not end")
	}
}

// Nothing is shown in a pipe, in a file, on the null device or when told so,
// nor for a stage that is over within the patience.
func TestMeterSilent(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, m := range []*meter{newMeter(w, false), newMeter(null, false), newMeter(w, true)} {
		m.update("Reading", 1, 2)
		m.since = time.Time{}
		m.update("Reading", 2, 2)
		if m.on || m.bars != nil {
			t.Errorf("%+v", m)
		}
	}
	m := &meter{w: io.Discard, on: true}
	m.update("Reading", 1, 2)
	m.update("Reading", 2, 2)
	if m.bars != nil {
		t.Error("a bar at once")
	}
}
