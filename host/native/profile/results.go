package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/npz"
)

// Where a profiler's results stand in its directory: in archives, or in the
// JSON files of older releases.
const (
	prefillNPZ  = "selected_prefill_interpolation/raw_data.npz"
	decodeNPZ   = "selected_decode_interpolation/raw_data.npz"
	prefillJSON = "prefill_raw_data.json"
	decodeJSON  = "decode_raw_data.json"
)

// The arrays of the results, beside prefill_isl.
const (
	rawTTFT      = "prefill_ttft"
	rawKVUsage   = "x_kv_usage" // share of max_kv_tokens
	rawContext   = "y_context_length"
	rawITL       = "z_itl"
	rawMaxTokens = "max_kv_tokens"
)

// LoadResults turns a profiler's results directory into a profile, as the
// reference's converter does: straight lines are fitted to the measurements
// and sampled at 100 points of each axis (engine notes §8.5; fit.go has the
// rules). Of each half an archive goes before a JSON file.
func LoadResults(dir string) (*config.ProfileTable, error) {
	var m measurements
	if err := m.readHalf(dir, "prefill", prefillNPZ, prefillJSON, m.readPrefill); err != nil {
		return nil, err
	}
	if err := m.readHalf(dir, "decode", decodeNPZ, decodeJSON, m.readDecode); err != nil {
		return nil, err
	}
	return m.fit()
}

// raw is a file of named arrays of numbers.
type raw interface {
	path() string
	numbers(name string) ([]float64, error)
	number(name string) (float64, error) // also as an array of one
}

// measurements are what a profiler measured.
type measurements struct {
	prefillPath string
	isl         []float64 // whole tokens
	ttftMs      []float64

	decodePath string
	kv         []float64 // whole tokens in the pool
	batch      []float64 // whole sequences
	itlMs      []float64
}

func (m *measurements) readHalf(dir, half, archive, text string, read func(raw) error) error {
	path := filepath.Join(dir, filepath.FromSlash(archive))
	if _, err := os.Stat(path); err == nil {
		a, err := npz.Open(path)
		if err != nil {
			return err
		}
		defer a.Close()
		return read(rawNPZ{a})
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: cannot be opened: %w", path, cliutil.Reason(err))
	}
	path = filepath.Join(dir, text)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: has no %s results; a directory with %s or %s is accepted", dir, half, archive, text)
	}
	data, err := readJSON(path)
	if err != nil {
		return err
	}
	d, err := parseJSON(path, data)
	if err != nil {
		return err
	}
	top, err := d.object(d.root, wholeFile, nil)
	if err != nil {
		return err
	}
	return read(rawJSON{d, top})
}

func (m *measurements) readPrefill(r raw) error {
	m.prefillPath = r.path()
	isl, err := measured(r, prefillISL)
	if err != nil {
		return err
	}
	ttft, err := measured(r, rawTTFT, isl)
	if err != nil {
		return err
	}
	m.ttftMs = ttft.data
	for i, x := range isl.data {
		if x > config.MaxTotalSlots {
			return tooMany(r, prefillISL, x, i)
		}
		m.isl = append(m.isl, math.Trunc(x)) // as the reference
	}
	return nil
}

func (m *measurements) readDecode(r raw) error {
	m.decodePath = r.path()
	usage, err := measured(r, rawKVUsage)
	if err != nil {
		return err
	}
	context, err := measured(r, rawContext, usage)
	if err != nil {
		return err
	}
	itl, err := measured(r, rawITL, usage)
	if err != nil {
		return err
	}
	total, err := r.number(rawMaxTokens)
	if err != nil {
		return err
	}
	if !(total >= 1 && total <= config.MaxTotalSlots && total == math.Trunc(total)) {
		return fmt.Errorf("%s: %s is %s; a whole number of tokens of at least 1 is accepted", r.path(), rawMaxTokens, number(total))
	}
	m.itlMs = itl.data
	for i, x := range usage.data {
		if context.data[i] == 0 {
			return fmt.Errorf("%s: array %s is 0 at index %d; numbers above 0 are accepted", r.path(), rawContext, i)
		}
		kv := math.RoundToEven(x * total)
		batch := max(1, math.RoundToEven(kv/context.data[i]))
		if kv > config.MaxTotalSlots || batch > config.MaxTotalSlots {
			return tooMany(r, rawKVUsage, x, i)
		}
		m.kv, m.batch = append(m.kv, kv), append(m.batch, batch)
	}
	return nil
}

func tooMany(r raw, name string, x float64, i int) error {
	return fmt.Errorf("%s: array %s is %s at index %d; at most %d tokens and sequences are accepted",
		r.path(), name, number(x), i, int64(config.MaxTotalSlots))
}

// measured reads an array of one or more finite numbers of at least 0, as
// many as beside has.
func measured(r raw, name string, beside ...array) (array, error) {
	data, err := r.numbers(name)
	if err != nil {
		return array{}, err
	}
	a := array{name: name, data: data, axes: beside}
	switch {
	case len(data) == 0:
		return a, fmt.Errorf("%s: array %s has no values; one or more are accepted", r.path(), name)
	case len(beside) > 0 && len(data) != len(beside[0].data):
		return a, a.fault(r.path(), config.TableFault{Fault: config.Fault{Code: config.WrongLength}})
	}
	for i, x := range data {
		f := config.TableFault{Index: i}
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
			f.Code = config.NotFinite
		case x < 0:
			f.Code = config.NegativeFloat
		default:
			continue
		}
		return a, a.fault(r.path(), f)
	}
	return a, nil
}

type rawNPZ struct{ a *npz.Archive }

func (r rawNPZ) path() string { return r.a.Path() }

func (r rawNPZ) numbers(name string) ([]float64, error) {
	got, err := r.a.Numbers(name, 1)
	return got.Data, err
}

func (r rawNPZ) number(name string) (float64, error) {
	got, err := r.a.Numbers(name, 0, 1)
	if err != nil {
		return 0, err
	}
	if len(got.Data) != 1 {
		return 0, fmt.Errorf("%s: array %s has shape %s; one value is accepted", r.a.Path(), name, npz.ShapeText(got.Shape))
	}
	return got.Data[0], nil
}

type rawJSON struct {
	d   document
	top members
}

func (r rawJSON) path() string { return r.d.path }

func (r rawJSON) numbers(name string) ([]float64, error) {
	n, err := r.field(name, "an array of numbers")
	if err != nil {
		return nil, err
	}
	return r.d.numbers(n, name)
}

func (r rawJSON) number(name string) (float64, error) {
	n, err := r.field(name, "a number")
	if err != nil {
		return 0, err
	}
	if l, ok := n.value.([]node); ok && len(l) == 1 {
		n = l[0]
	}
	return r.d.number(n, name)
}

func (r rawJSON) field(name, want string) (node, error) {
	n, ok := r.top.values[name]
	if !ok {
		return node{}, fmt.Errorf("%s: has no field %s; %s is accepted", r.d.path, name, want)
	}
	return n, nil
}
