package main

import (
	"io"
	"os"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// meter shows how far a stage is, on a terminal only. A stage that is done
// within the patience shows nothing, so short runs never start the machinery.
type meter struct {
	w     io.Writer
	on    bool
	stage string
	since time.Time
	bars  *mpb.Progress
	bar   *mpb.Bar
}

// patience is how long a stage stays silent.
const patience = 300 * time.Millisecond

func newMeter(w *os.File, quiet bool) *meter {
	m := &meter{w: w}
	if info, err := w.Stat(); err == nil && !quiet {
		m.on = info.Mode()&os.ModeCharDevice != 0 && w.Name() != os.DevNull
	}
	return m
}

// update says that done of total are done, total below 1 for unknown. With
// another stage than before the old bar goes away.
func (m *meter) update(stage string, done, total int64) {
	if !m.on {
		return
	}
	if stage != m.stage {
		m.stop()
		m.stage, m.since = stage, time.Now()
	}
	if m.bars == nil {
		if time.Since(m.since) < patience {
			return
		}
		m.start(total)
	}
	m.bar.SetCurrent(min(done, max(total-1, done-1))) // the last step is stop's
}

// progress is update, nil if nobody looks. No stage takes the bar away.
func (m *meter) progress() func(stage string, done, total int64) {
	if !m.on {
		return nil
	}
	return func(stage string, done, total int64) {
		if stage == "" {
			m.stop()
			return
		}
		m.update(stage, done, total)
	}
}

func (m *meter) start(total int64) {
	m.bars = mpb.New(mpb.WithOutput(m.w), mpb.WithWidth(60))
	name := mpb.PrependDecorators(decor.Name(m.stage+" ", decor.WCSyncSpaceR))
	if total < 1 {
		m.bar = m.bars.AddSpinner(0, name, mpb.BarRemoveOnComplete())
		return
	}
	m.bar = m.bars.AddBar(total, name, mpb.AppendDecorators(decor.Percentage()), mpb.BarRemoveOnComplete())
}

// stop takes the bar away. The meter can be used again.
func (m *meter) stop() {
	if m.bars != nil {
		m.bar.Abort(true)
		m.bars.Wait()
		m.bars, m.bar = nil, nil
	}
	m.stage = ""
}
