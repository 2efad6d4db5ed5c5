package bench

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/dryserve/dryserve/internal/oracle"
)

//go:embed reference.py
var referenceSource string

//go:embed package.py
var packageSource string

// Sample is one run of one program.
type Sample struct {
	Wall   time.Duration
	CPU    time.Duration // of all its threads
	PeakMB float64       // largest resident memory of the whole process
	AtMost bool          // the peak may be less: it is hidden by this process's own
	Import time.Duration // of the module, where it is a call from Python
	Again  time.Duration // of a second call in the same process, where one was asked for
	Report map[string]any
}

// Job is a trace replayed with a number of workers, everything else default:
// 16,384 blocks, polynomial timing, 512-token trace ids.
type Job struct {
	Name    string
	Trace   string
	Workers int
	Engine  string // engine arguments; "": vLLM with blocks of 64 tokens
	Router  string // router mode; "": round robin
	Cache   string // directory for compiled WebAssembly, in which our program runs then; "": natively
	From    string // our side is a call of the Python package, natively or in wasm; "": our program
}

func (j Job) engine() string {
	if j.Engine == "" {
		return `{"engine": {"backend": "vllm"}}`
	}
	return j.Engine
}

// Programs are the two sides.
type Programs struct {
	Ours   string // this project's replay program
	Python string // interpreter that has the reference; "" leaves it out

	Package string // interpreter that has this project's Python package
}

// ours runs this project's program once, as a whole process, or the call of
// its Python package.
func (p Programs) ours(j Job) (Sample, error) {
	if j.From != "" {
		return call(exec.Command(p.Package, "-c", packageSource, j.Trace, strconv.Itoa(j.Workers), j.engine(), j.From))
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return Sample{}, err
	}
	defer os.RemoveAll(dir)
	report := filepath.Join(dir, "report.json")
	args := []string{j.Trace, "--num-workers", strconv.Itoa(j.Workers), "--extra-engine-args", j.engine(), "--report-json", report}
	if j.Router != "" {
		args = append(args, "--router-mode", j.Router)
	}
	if j.Cache != "" {
		args = append(args, "--engine", "wasm", "--wasm-cache", j.Cache)
	}
	s, _, err := timed(exec.Command(p.Ours, args...))
	if err != nil {
		return s, err
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s.Report)
}

// reference runs the reference once and takes the time of its call.
func (p Programs) reference(j Job) (Sample, error) {
	return call(exec.Command(p.Python, "-c", referenceSource, j.Trace, strconv.Itoa(j.Workers), j.engine(), cmp.Or(j.Router, "round_robin")))
}

// call runs a Python program that tells the time of one call.
func call(cmd *exec.Cmd) (Sample, error) {
	s, out, err := timed(cmd)
	if err != nil {
		return s, err
	}
	var said struct {
		WallS   float64 `json:"wall_s"`
		AgainS  float64 `json:"again_s"`
		ImportS float64 `json:"import_s"`
		Report  map[string]any
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return s, fmt.Errorf("%s printed %.80q: %w", cmd.Path, out, err)
	}
	s.Wall = time.Duration(said.WallS * float64(time.Second))
	s.Again = time.Duration(said.AgainS * float64(time.Second))
	s.Import = time.Duration(said.ImportS * float64(time.Second))
	s.Report = said.Report
	return s, nil
}

// timed runs a command to its end and measures the process.
func timed(cmd *exec.Cmd) (Sample, []byte, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now()
	err := cmd.Run()
	s := Sample{Wall: time.Since(begin)}
	if err != nil {
		return s, nil, fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, bytes.TrimSpace(errs.Bytes()))
	}
	s.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		s.PeakMB = megabytes(usage.Maxrss)
		own, err := ownPeakMB()
		if err != nil {
			return s, nil, err
		}
		s.AtMost = s.PeakMB <= own
	}
	return s, out.Bytes(), nil
}

// ownPeakMB is this process's peak. A new process begins with the memory of
// its parent on its account, so a smaller peak of it cannot be seen.
func ownPeakMB() (float64, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, err
	}
	own := megabytes(usage.Maxrss)
	// That has the peak of this process's own parent in it, which its children
	// do not inherit. Linux knows it without.
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		var kilobytes int64
		_, line, found := bytes.Cut(status, []byte("VmHWM:"))
		if _, err := fmt.Sscan(string(line), &kilobytes); found && err == nil {
			own = min(own, float64(kilobytes)/(1<<10))
		}
	}
	return own, nil
}

// megabytes converts a peak as the system counts it.
func megabytes(peak int64) float64 {
	if runtime.GOOS == "darwin" {
		return float64(peak) / (1 << 20) // bytes
	}
	return float64(peak) / (1 << 10) // kilobytes
}

// Result is what a job's runs gave.
type Result struct {
	Job
	Requests        int
	Ours, Reference []Sample
	Differences     []string // between the two reports
}

// Measure runs a job repeat times, the two programs taking turns.
func (p Programs) Measure(j Job, repeat int) (Result, error) {
	r := Result{Job: j}
	if j.Cache != "" || j.From != "" { // the first run compiles
		if _, err := p.ours(j); err != nil {
			return r, err
		}
	}
	for range repeat {
		s, err := p.ours(j)
		if err != nil {
			return r, err
		}
		r.Ours = append(r.Ours, s)
		if p.Python == "" {
			continue
		}
		if s, err = p.reference(j); err != nil {
			return r, err
		}
		r.Reference = append(r.Reference, s)
	}
	n, _ := r.Ours[0].Report["num_requests"].(float64)
	r.Requests = int(n)
	if p.Python != "" {
		reference, ours := r.Reference[0].Report, r.Ours[0].Report
		if j.Router != "" {
			reference, ours = counts(reference), counts(ours)
		}
		r.Differences = oracle.CompareReports(reference, ours)
	}
	return r, nil
}

// counts is what a report says that lots among workers cannot change. The KV
// router of the reference draws them unseeded, so nothing else can be compared.
func counts(report map[string]any) map[string]any {
	few := map[string]any{}
	for _, key := range []string{
		"num_requests", "completed_requests", "rejected_requests", "failed_requests", "cancelled_requests", "unfinished_requests",
		"total_input_tokens", "total_output_tokens",
	} {
		if x, ok := report[key]; ok {
			few[key] = x
		}
	}
	return few
}

// span is the minimum and the median of the samples' times in seconds, and
// the largest peak.
type span struct {
	min, median, peakMB float64
	atMost              bool
}

func summarise(samples []Sample) span {
	var seconds []float64
	s := span{}
	for _, x := range samples {
		seconds = append(seconds, x.Wall.Seconds())
		if x.PeakMB > s.peakMB {
			s.peakMB, s.atMost = x.PeakMB, x.AtMost
		}
	}
	slices.Sort(seconds)
	s.min = seconds[0]
	middle := len(seconds) / 2
	s.median = seconds[middle]
	if len(seconds)%2 == 0 {
		s.median = (seconds[middle-1] + seconds[middle]) / 2
	}
	return s
}
