package accuracy

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
)

// Filter picks rows of a table of benchmarks; an empty field takes all.
type Filter struct {
	Model, Backend, System string
	TP                     int
}

// Clients say how a benchmark's clients behave where the table does not.
type Clients struct {
	Waves  int     // requests of each client, one after the other
	Spread float64 // output lengths vary evenly by up to this share, up and down
}

// ReadSilicon reads a table of closed-loop benchmarks as aiconfigurator ships
// it: a row has one prompt and output length, a number of clients
// (batch_size) and the mean TTFT and TPOT in ms. Rows of other modes than agg
// and of more than one pipeline stage are left out.
func ReadSilicon(path string, filter Filter, clients Clients) ([]Case, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	head, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("%s: %w; a table with a header is accepted", path, err)
	}
	column := map[string]int{}
	for i, name := range head {
		column[name] = i
	}
	for _, name := range []string{"backend", "backend_version", "model_path", "system", "mode", "isl", "osl", "batch_size", "tp_size", "pp_size", "silicon_ttft_ms", "silicon_tpot_ms"} {
		if _, ok := column[name]; !ok {
			return nil, fmt.Errorf("%s: has no column %s; a table of benchmarks is accepted", path, name)
		}
	}
	var cases []Case
	for {
		fields, err := r.Read()
		if errors.Is(err, io.EOF) {
			return cases, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		row := row{fields: fields, column: column}
		c, wanted := row.toCase(filter, clients)
		if row.bad != "" {
			line, _ := r.FieldPos(0)
			return nil, fmt.Errorf("%s: line %d: %s is %q; a number above 0 is accepted", path, line, row.bad, row.text(row.bad))
		}
		if wanted {
			cases = append(cases, c)
		}
	}
}

// row is a line of the table; bad is the first column that is no number.
type row struct {
	fields []string
	column map[string]int
	bad    string
}

func (r *row) text(name string) string { return r.fields[r.column[name]] }

func (r *row) number(name string) float64 {
	x, err := strconv.ParseFloat(r.text(name), 64)
	if (err != nil || !(x > 0)) && r.bad == "" {
		r.bad = name
	}
	return x
}

func (r *row) count(name string) int {
	n, err := strconv.Atoi(r.text(name))
	if (err != nil || n < 1) && r.bad == "" {
		r.bad = name
	}
	return n
}

func (r *row) toCase(filter Filter, clients Clients) (Case, bool) {
	other := func(want, got string) bool { return want != "" && want != got }
	if r.text("mode") != "agg" || r.text("pp_size") != "1" || other(filter.Model, r.text("model_path")) ||
		other(filter.Backend, r.text("backend")) || other(filter.System, r.text("system")) {
		return Case{}, false
	}
	c := Case{
		Model: r.text("model_path"), Backend: r.text("backend"), System: r.text("system"), TP: r.count("tp_size"),
		Concurrency: r.count("batch_size"),
		Measured:    map[Metric]float64{TTFTMean: r.number("silicon_ttft_ms"), TPOTMean: r.number("silicon_tpot_ms")},
	}
	if filter.TP != 0 && filter.TP != c.TP {
		return Case{}, false
	}
	input, output := r.count("isl"), r.count("osl")
	c.Name = fmt.Sprintf("%s, %d x %s, %s %s, %d in %d out, %d clients",
		c.Model, c.TP, c.System, c.Backend, r.text("backend_version"), input, output, c.Concurrency)
	if r.bad == "" {
		draw := rand.New(rand.NewPCG(1, 0)) // the same for every case
		for range clients.Waves * c.Concurrency {
			factor := 1 + clients.Spread*(2*draw.Float64()-1)
			c.Requests = append(c.Requests, Request{Input: input, Output: max(1, int(math.Round(float64(output)*factor)))})
		}
	}
	return c, true
}
