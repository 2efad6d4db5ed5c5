package replay_test

import (
	"math"
	"slices"
	"testing"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/internal/parity"
)

// twice is a workload of two sessions of two turns, at 0 and 10 ms; the second
// turns come 5 ms after the first ones end.
func twice(t *testing.T, cfg config.Replay) *workload.Workload {
	t.Helper()
	var rows []trace.Row
	for i, session := range []string{"a", "a", "b", "b"} {
		row := trace.Row{SessionID: []byte(session), InputLength: 30, OutputLength: 3, HashIDs: []uint64{uint64(i) + 1}, TimestampMs: float64(i / 2 * 10), HasTimestamp: i%2 == 0}
		if i%2 == 1 {
			row.DelayMs, row.HasDelay = 5, true
		}
		rows = append(rows, row)
	}
	w, err := parity.Build(rows, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// arrive wants a turn to be due at a time, and no other at nowMs.
func arrive(t *testing.T, c *replay.Course, nowMs float64, want int32, atMs float64) {
	t.Helper()
	if atMs > 0 {
		if turn, at, ok := c.Arrive(math.Nextafter(atMs, 0)); ok {
			t.Fatalf("turn %d, due at %g ms, comes before %g", turn, at, atMs)
		}
	}
	if turn, at, ok := c.Arrive(nowMs); turn != want || at != atMs || !ok {
		t.Fatalf("turn %d comes, due at %g ms, %v; want %d at %g", turn, at, ok, want, atMs)
	}
	if turn, _, ok := c.Arrive(nowMs); ok {
		t.Fatalf("turn %d comes, too", turn)
	}
}

func ended(turn int32, atMs ...float64) *replay.Outcome {
	return &replay.Outcome{
		Turn: turn, Worker: 1, EndMs: atMs[len(atMs)-1], TimesMs: atMs,
		Admissions: []replay.Admission{{AtMs: atMs[0] - 8, Reused: 16}, {AtMs: atMs[0] - 4, Reused: 20}}, HostTokens: 4,
	}
}

// Latencies count from when a turn was due, however late that was noticed; the
// next turn counts from the end that was told.
func TestCourse(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.NumWorkers, cfg.CaptureRequests, cfg.TraceBlockSize = 2, true, 64
	cfg.SLA.TTFTMs = 11
	c := replay.NewCourse(cfg, twice(t, cfg))
	arrive(t, c, 3, 0, 0)
	arrive(t, c, 10.5, 2, 10)
	if next := c.NextMs(); !math.IsInf(next, 1) || c.Done() {
		t.Fatalf("the next turn comes at %g, done: %v", next, c.Done())
	}
	if prompt, output := c.Spell(2); !slices.Equal(prompt, slices.Repeat([]uint32{2}, 30)) || output != nil || c.ID(2)[15] != 3 {
		t.Errorf("turn 2 is %v, %v", prompt, output)
	}
	c.End(ended(0, 10, 12, 20))
	c.End(ended(2, 25, 26, 27))
	arrive(t, c, 26, 1, 25)
	arrive(t, c, 40, 3, 32)
	c.End(&replay.Outcome{Turn: 1, Status: replay.Rejected, EndMs: 26})
	c.End(&replay.Outcome{Turn: 3, Status: replay.Failed, EndMs: 50})
	if done, total := c.Progress(); !c.Done() || done != 4 || total != 4 {
		t.Fatalf("done: %v, %d of %d", c.Done(), done, total)
	}

	s := c.Summary(77)
	if s.NumRequests != 4 || s.CompletedRequests != 2 || s.RejectedRequests != 1 || s.FailedRequests != 1 || s.UnfinishedRequests != 0 || s.CommittedPrefillTokens != 77 {
		t.Errorf("%+v", s)
	}
	for name, x := range map[string][2]float64{
		"duration": {s.DurationMs, 27}, "worker-seconds": {s.DecodeWorkerSeconds, 2 * 27 / 1000.}, "ttft": {s.TTFT.Mean, 12.5}, "e2e": {s.E2E.Max, 20},
		"gaps": {s.ITL.Max, 8}, "reuse": {s.PrefixReusedRatio, 40. / 60}, "first reuse": {s.FirstAdmissionReused, 32. / 60},
		"rate": {s.OutputThroughputTokS, 6 / 0.027}, "goodput": {float64(s.GoodputCompleted), 1},
	} {
		if x[0] != x[1] {
			t.Errorf("%s is %g, want %g", name, x[0], x[1])
		}
	}
	if u := c.Unservable(); len(u) != 1 || u[0] != 3 {
		t.Errorf("unservable: %v", u)
	}
	r := c.Records()[1]
	if r.Turn != 2 || r.ArrivalMs != 10 || r.FirstAdmitMs != 17 || r.SecondTokenMs != 26 || r.ReusedTokens != 20 || r.FirstHostTokens != 4 || r.AdmissionCount != 2 || r.Worker != 1 {
		t.Errorf("%+v", r)
	}
	if a := c.Admissions()[r.AdmissionStart:][:r.AdmissionCount]; !slices.Equal(a, []replay.Admission{{AtMs: 17, Reused: 16}, {AtMs: 21, Reused: 20}}) {
		t.Errorf("%v", a)
	}
}

// Under a cap a session begins when another has ended.
func TestCourseCapped(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.TraceBlockSize, cfg.Concurrency = 64, 1
	c := replay.NewCourse(cfg, twice(t, cfg))
	arrive(t, c, 0, 0, 0)
	c.End(ended(0, 9))
	arrive(t, c, 99, 1, 14)
	c.End(ended(1, 100))
	arrive(t, c, 100, 2, 100)
	c.End(ended(2, 110))
	arrive(t, c, 115, 3, 115)
}

// Where inputs are increments a prompt has what was really said.
func TestCourseDelta(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	w := talking(t, cfg, 8, 1000)
	c := replay.NewCourse(cfg, w)
	turn, _, ok := c.Arrive(0)
	if !ok {
		t.Fatal("nothing comes")
	}
	first, _ := c.Spell(turn)
	n := len(first)
	c.End(ended(turn, 9, 10, 11, 12, 13))
	next, atMs, ok := c.Arrive(99)
	if !ok || atMs != 16 || next != w.Turns[turn].Next {
		t.Fatalf("turn %d comes at %g, %v", next, atMs, ok)
	}
	if prompt, _ := c.Spell(next); len(prompt) != n+5+int(w.Turns[next].Input) {
		t.Errorf("a prompt of %d tokens after %d and 5", len(prompt), n)
	}
}

// A warm course allocates nothing.
func TestCourseAllocatesNothing(t *testing.T) {
	cfg := config.DefaultReplay(config.VLLM)
	cfg.TraceBlockSize, cfg.Concurrency = 64, 4
	c := replay.NewCourse(cfg, steady(t, cfg, 4000, 1))
	nowMs, out := 0.0, *ended(0, 1, 2, 3)
	one := func() {
		turn, _, ok := c.Arrive(nowMs)
		if !ok {
			t.Fatal("nothing comes")
		}
		c.Spell(turn)
		nowMs++
		for i := range out.TimesMs {
			out.TimesMs[i] = nowMs + float64(i)/8
		}
		out.Turn, out.EndMs = turn, nowMs
		c.End(&out)
	}
	for range 2000 {
		one()
	}
	if n := testing.AllocsPerRun(1500, one); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}
