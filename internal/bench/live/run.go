package live

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"
)

// Options describe a measurement.
type Options struct {
	Ours   string   // this project's mocker
	Python string   // interpreter that has the reference
	Self   []string // command that runs Floor with two more arguments, root and model

	Model    string // directory of the small model
	Mode     string // router mode of the frontends
	Rounds   int
	Requests int // of a round
	Loads    []Point
	Progress io.Writer
}

// Point is one load: clients at once, and tokens that each asks for.
type Point struct{ Concurrency, Tokens int }

// names of the workers, in the table's order.
const (
	ours      = "ours"
	reference = "reference"
	floor     = "instant"
)

// ready is how many records a worker of either mocker has.
const ready = 8

// idleTime is how long a worker rests before its idle memory is read.
const idleTime = time.Second

// Run measures and prints the tables.
func Run(o Options, w io.Writer) error {
	dir, err := os.MkdirTemp("", "benchlive")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	model, home := filepath.Join(dir, "model"), filepath.Join(dir, "home")
	for _, d := range []string{model, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	if err := writeModel(o.Model, model); err != nil {
		return err
	}
	flags := []string{"--discovery-backend", "file", "--model-path", model, "--model-name", modelName, "--speedup-ratio", "1e9"}
	workers := []struct {
		name    string
		records int
		command []string
	}{
		{ours, ready, append([]string{o.Ours}, flags...)},
		{reference, ready, append([]string{o.Python, "-m", "dynamo.mocker"}, flags...)},
		{floor, floorRecords, nil},
	}
	starts, err := startTimes(o, dir, home, workers[0].command, workers[1].command)
	if err != nil {
		return err
	}
	var stations []*station
	defer func() {
		for _, s := range stations {
			s.close()
		}
	}()
	for _, x := range workers {
		s := &station{name: x.name, root: filepath.Join(dir, x.name)}
		stations = append(stations, s)
		if x.command == nil {
			x.command = append(slices.Clone(o.Self), s.root, model)
		}
		if err := s.start(o, x.records, home, x.command); err != nil {
			return err
		}
	}
	time.Sleep(idleTime)
	for _, s := range stations {
		if s.idleMB, err = s.memory(); err != nil {
			return err
		}
		if _, err := s.load(Point{8, 8}, 100).Run(); err != nil { // to warm up
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	var rows []row
	for _, p := range o.Loads {
		r, err := measure(o, p, stations)
		if err != nil {
			return err
		}
		rows = append(rows, r...)
	}
	for _, s := range stations {
		if s.usedMB, err = s.memory(); err != nil {
			return err
		}
	}
	return write(w, rows, stations, starts)
}

// start starts the frontend and the worker behind it.
func (s *station) start(o Options, records int, home string, command []string) error {
	if err := s.startFrontend(o.Python, o.Mode, home); err != nil {
		return err
	}
	return s.startWorker(records, home, command[0], command[1:]...)
}

// load is a load on the station's frontend.
func (s *station) load(p Point, requests int) Load {
	return Load{Address: s.address, Model: modelName, Concurrency: p.Concurrency, Requests: requests, PromptBytes: 256, Tokens: p.Tokens}
}

// startTimes starts both mockers in turn, without a frontend, and returns the ms
// until all records are there.
func startTimes(o Options, dir, home string, commands ...[]string) (starts [][]float64, err error) {
	starts = make([][]float64, len(commands))
	for round := range o.Rounds {
		for i, c := range commands {
			s := &station{name: c[0], root: filepath.Join(dir, fmt.Sprint("start-", round, "-", i))}
			began := time.Now()
			if s.worker, err = launch(environment(s.root, home), c[0], c[1:]...); err != nil {
				return nil, err
			}
			for s.records() < ready && time.Since(began) < time.Minute {
				time.Sleep(time.Millisecond)
			}
			starts[i] = append(starts[i], ms(began))
			s.close()
			if n := s.records(); n < ready {
				return nil, fmt.Errorf("%s: %d records after a minute, want %d: %s", c[0], n, ready, s.worker.said.String())
			}
		}
	}
	return starts, nil
}

// row is what one worker reached under one load, by round.
type row struct {
	point       Point
	worker      string
	rounds      []Figures
	cpu, before []float64 // ms for a request: the worker's, the frontend's
}

// measure lets the workers take turns under one load.
func measure(o Options, p Point, stations []*station) ([]row, error) {
	rows := make([]row, len(stations))
	for i, s := range stations {
		rows[i].point, rows[i].worker = p, s.name
	}
	for round := range o.Rounds {
		for k := range stations {
			i := (k + round) % len(stations)
			s := stations[i]
			var used [2]time.Duration
			for j, process := range []*process{s.worker, s.frontend} {
				t, err := process.cpu()
				if err != nil {
					return nil, err
				}
				used[j] = t
			}
			f, err := s.load(p, o.Requests).Run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			rows[i].rounds = append(rows[i].rounds, f)
			for j, process := range []*process{s.worker, s.frontend} {
				t, err := process.cpu()
				if err != nil {
					return nil, err
				}
				ms := float64((t - used[j]).Milliseconds()) / float64(o.Requests)
				if j == 0 {
					rows[i].cpu = append(rows[i].cpu, ms)
				} else {
					rows[i].before = append(rows[i].before, ms)
				}
			}
			fmt.Fprintf(o.Progress, "%d clients, %d tokens, round %d: %s %.0f/s\n", p.Concurrency, p.Tokens, round+1, s.name, f.PerSecond)
		}
	}
	return rows, nil
}

// write prints the tables.
func write(w io.Writer, rows []row, stations []*station, starts [][]float64) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "clients\ttokens\tworker\treq/s\tof instant\tof reference\tTTFT p50\tp99\ttotal p50\tp99 ms\tworker CPU\tfrontend CPU ms/req\t")
	for i, r := range rows {
		of := func(field func(Figures) float64) float64 { return median(field, r.rounds) }
		rate := func(r row) float64 { return median(func(f Figures) float64 { return f.PerSecond }, r.rounds) }
		same := rows[i-i%len(stations):] // the first of them have this load
		fmt.Fprintf(t, "%d\t%d\t%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", r.point.Concurrency, r.point.Tokens, r.worker,
			rate(r), rate(r)/rate(same[2]), rate(r)/rate(same[1]),
			of(func(f Figures) float64 { return f.TTFT50 }), of(func(f Figures) float64 { return f.TTFT99 }),
			of(func(f Figures) float64 { return f.Total50 }), of(func(f Figures) float64 { return f.Total99 }),
			median(self, r.cpu), median(self, r.before))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	a, b := stations[0], stations[1]
	s, u := median(self, starts[0]), median(self, starts[1])
	_, err := fmt.Fprintf(w, `idle memory: ours %.1f MB, reference %.1f MB: %.2f of it
memory after the load: ours %.1f MB, reference %.1f MB: %.2f of it
start until all records are there, median: ours %.0f ms, reference %.0f ms: %.3f of it
`, a.idleMB, b.idleMB, a.idleMB/b.idleMB, a.usedMB, b.usedMB, a.usedMB/b.usedMB, s, u, s/u)
	return err
}

func self(x float64) float64 { return x }

// median is that of a field of some values.
func median[T any](field func(T) float64, list []T) float64 {
	x := make([]float64, len(list))
	for i, v := range list {
		x[i] = field(v)
	}
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
