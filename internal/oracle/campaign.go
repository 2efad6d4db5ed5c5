package oracle

import (
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dryserve/dryserve/internal/gen"
)

// Runner answers a case whose trace stands in dir, and which the reference has
// answered (see Ours).
type Runner func(dir string, c *gen.ReplayCase, reference Answer) Answer

// Campaign compares a range of seeds.
type Campaign struct {
	Python      string // interpreter that has the reference
	Family      string // of the cases, see gen.Families
	Seed        uint64 // first seed
	Cases       int
	Jobs        int           // processes of the reference, each with a thread of ours
	Timeout     time.Duration // of the reference per case; a late case is asked again with five times as much
	Ours        Runner
	Regressions string // folder for the cases that differ
	MaxFailures int    // stop after so many
	ShrinkSteps int    // candidates tried per failure
	Log         io.Writer
}

// Tally counts the outcomes of a campaign.
type Tally struct {
	ByOutcome [Crash + 1]int // of the reference
	Failures  int
	Cases     int
}

func (t Tally) String() string {
	return fmt.Sprintf("%d cases: %d finished, %d refused, %d dead ends, %d without a worker, %d without end; %d differ",
		t.Cases, t.ByOutcome[Finished], t.ByOutcome[Refused], t.ByOutcome[DeadEnd], t.ByOutcome[Nobody], t.ByOutcome[NoEnd], t.Failures)
}

// Run compares the seeds and shrinks and records what differs. The error
// means the campaign could not be carried out.
func (c *Campaign) Run() (Tally, error) {
	var (
		tally Tally
		mu    sync.Mutex // tally and Log
		next  atomic.Int64
		stop  atomic.Bool
		wait  sync.WaitGroup
		fails = make([]error, c.Jobs)
	)
	for job := range c.Jobs {
		wait.Go(func() {
			fails[job] = c.work(func(p *pair) error {
				for {
					i := next.Add(1) - 1
					if i >= int64(c.Cases) || stop.Load() {
						return nil
					}
					kase, err := gen.FamilyCase(c.Seed+uint64(i), c.Family)
					if err != nil {
						return err
					}
					ref, ours, err := p.ask(kase)
					if err != nil {
						return fmt.Errorf("%s: %w", kase.Name, err)
					}
					diffs := Compare(ref, ours)
					text := ""
					if diffs != nil {
						if text, err = c.report(p, kase, ref, ours, diffs); err != nil {
							return err
						}
					}
					mu.Lock()
					tally.Cases++
					tally.ByOutcome[ref.Outcome]++
					if diffs != nil {
						tally.Failures++
						fmt.Fprint(c.Log, text)
					}
					if tally.Failures >= c.MaxFailures {
						stop.Store(true)
					}
					mu.Unlock()
				}
			})
			if fails[job] != nil {
				stop.Store(true)
			}
		})
	}
	wait.Wait()
	for _, err := range fails {
		if err != nil {
			return tally, err
		}
	}
	return tally, nil
}

// pair is the two sides and the folder they read traces from.
type pair struct {
	c   *Campaign
	ref *Reference
	dir string
}

// work gives one job its pair.
func (c *Campaign) work(job func(*pair) error) error {
	dir, err := os.MkdirTemp("", "oracle")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ref, err := StartReference(c.Python)
	if err != nil {
		return err
	}
	defer ref.Close()
	return job(&pair{c: c, ref: ref, dir: dir})
}

// ask runs a case on both sides.
func (p *pair) ask(kase *gen.ReplayCase) (ref, ours Answer, err error) {
	if err = kase.WriteInputs(p.dir); err != nil {
		return ref, ours, err
	}
	ref, err = p.ref.Ask(p.dir, kase, p.c.Timeout)
	ours = p.c.Ours(p.dir, kase, ref)
	// A machine under load must not make a slow case look endless, so a late
	// one gets a second, longer chance, unless we agree.
	if err == nil && ref.Outcome == NoEnd && ours.Outcome != NoEnd {
		ref, err = p.ref.Ask(p.dir, kase, 5*p.c.Timeout)
		ours = p.c.Ours(p.dir, kase, ref)
	}
	return ref, ours, err
}

// report shrinks a case that differs, records it and words the finding. A
// reference that draws lots may agree when it is asked again; then the first
// differences are told.
func (c *Campaign) report(p *pair, kase *gen.ReplayCase, ref, ours Answer, first []string) (string, error) {
	var broken error
	small, minimal := Shrink(kase, func(candidate *gen.ReplayCase) bool {
		r, o, err := p.ask(candidate)
		if err != nil {
			broken = err
			return false
		}
		// The same kind of difference, not any other the changes bring about.
		return r.Outcome == ref.Outcome && o.Outcome == ours.Outcome && Compare(r, o) != nil
	}, c.ShrinkSteps)
	if broken != nil {
		return "", broken
	}
	r, o, err := p.ask(small)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("DIFFERENCE %s\n", kase.Name)
	if !minimal {
		text += fmt.Sprintf("(shrinking stopped after %d candidates)\n", c.ShrinkSteps)
	}
	diffs := Compare(r, o)
	if diffs == nil {
		small, r, diffs = kase, ref, append([]string{"asked again, the reference agrees; at first:"}, first...)
	}
	for _, d := range diffs {
		text += "  " + d + "\n"
	}
	head, err := small.MarshalCase()
	if err != nil {
		return "", err
	}
	text += string(head) + string(small.Trace())
	recorded, err := NewRecorded(small, r)
	if err != nil { // nothing to compare with later; the text above is all there is
		return text + "not recorded: " + err.Error() + "\n", nil
	}
	if err := recorded.Save(c.Regressions); err != nil {
		return "", err
	}
	return text + "recorded in " + c.Regressions + "/" + small.Name + "\n", nil
}
