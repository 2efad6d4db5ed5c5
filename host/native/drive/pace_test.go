package drive_test

import (
	"testing"
	"time"

	"github.com/dryserve/dryserve/host/native/drive"
)

// Steps of a slow engine become small, of a quick one large, and a fitting
// budget stays.
func TestPace(t *testing.T) {
	for _, c := range []struct {
		perEvent    time.Duration
		least, most int
	}{
		{time.Hour, 64, 64}, {0, 1 << 16, 1 << 16}, {time.Microsecond, 10_000, 40_000}, {20 * time.Microsecond, 500, 2000},
	} {
		var p drive.Pace
		for range 50 {
			p.Took(time.Duration(p.Events()) * c.perEvent)
		}
		if n := p.Events(); n < c.least || n > c.most {
			t.Errorf("at %v an event a step has %d events", c.perEvent, n)
		}
	}
}
