// Package engineargs reads the engine arguments that describe a simulated
// engine: inline JSON or a file, in the canonical form of the reference
// ({"engine": {…}, "dp_size": …, "dynamo": {…}}) or in the flat form of its
// older releases ({"block_size": …, "engine_type": …}).
//
// It owns the names, types, defaults and sentences of those fields. It does
// not own the rules between numbers that the simulation needs (core/config
// does) and it does not start anything.
//
// Invariants: nothing is ignored in silence. Unknown fields, duplicate
// fields and wrong types are errors at every level; a field whose feature is
// not built yet is refused unless it has its neutral value; fields that
// cannot change an offline replay are checked and kept, so that Marshal
// gives them back.
package engineargs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
	"github.com/dryserve/dryserve/host/native/gridfind"
	"github.com/dryserve/dryserve/host/native/profile"
)

// Flag is the command-line flag whose argument Load takes where Options name
// no other; it names inline JSON in sentences.
const Flag = "--extra-engine-args"

// maxFileBytes bounds a file of engine arguments; real ones have under 4 KiB.
const maxFileBytes = 16 << 20

// OptUint is an optional whole number.
type OptUint struct {
	Set bool
	V   uint64
}

// OptFloat is an optional number.
type OptFloat struct {
	Set bool
	V   float64
}

// OptString is an optional text.
type OptString struct {
	Set bool
	V   string
}

// Args is one engine as launched. Engine is what the simulation reads; the
// rest cannot change an offline replay.
//
// Source of fields and defaults: reference behaviour notes, engine §2.
type Args struct {
	Engine config.Engine
	Timing TimingFile    // what Engine.Timing was loaded from
	Grid   *profile.Grid // what else a grid says; nil without one

	PrefillScheduleInterval uint64 // acts only with dp_size above 1
	PrefillDecodeInterval   uint64 // SGLang only
	MTPSeed                 uint64 // acts only with aic_nextn
	SGLang                  SGLang

	KVTransferBytesPerToken OptUint   // bytes, disaggregated serving only
	KVCacheBytesPerToken    OptUint   // bytes, host offload only
	KVLayoutID              OptString // names the layout of blocks in shared host memory
	KVTransferBandwidthGBs  OptFloat  // 1e9 bytes/s, disaggregated serving only
	DestinationMissing      bool      // transfer only what the destination lacks

	StartupTimeS           OptFloat // acts only when workers are added
	NumGPUBlocksExplicit   bool
	GPUMemoryUtilization   OptFloat // capacity planning only, as the next three
	MemFractionStatic      OptFloat
	FreeGPUMemoryFraction  OptFloat
	CUDAGraphReservedBytes OptUint

	Dynamo Dynamo
}

// Backend is the name of the engine's backend.
func (a Args) Backend() string { return backendWords[a.Engine.Backend] }

// SGLang holds the scheduler settings that only backend sglang reads.
type SGLang struct {
	LongestPrefixFirst bool // schedule_policy lpm instead of fifo
	MaxPrefillTokens   uint64
	ChunkedPrefillSize uint64 // tokens
	ClipMaxNewTokens   uint64
	Conservativeness   float64
}

// sglang is what the scheduler reads of them. A count beyond every workload
// stands for no limit; a chunk keeps whole blocks then.
func (a *Args) sglang() config.SGLangOptions {
	s := a.SGLang
	least := func(n uint64, most int) int { return int(min(n, uint64(most))) }
	o := config.SGLangOptions{
		MaxPrefillTokens:      least(s.MaxPrefillTokens, config.Unbounded),
		ChunkedPrefillSize:    least(s.ChunkedPrefillSize, config.Unbounded),
		ClipMaxNewTokens:      least(s.ClipMaxNewTokens, config.Unbounded),
		Conservativeness:      s.Conservativeness,
		PrefillDecodeInterval: least(a.PrefillDecodeInterval, config.Unbounded),
	}
	if s.LongestPrefixFirst {
		o.Policy = config.LPM
	}
	if size := a.Engine.BlockSize; size > 0 && s.ChunkedPrefillSize > uint64(config.Unbounded) && s.ChunkedPrefillSize%uint64(size) == 0 {
		o.ChunkedPrefillSize -= config.Unbounded % size
	}
	return o
}

// transfer is what the simulation reads of the link to other workers.
func (a *Args) transfer() config.Transfer {
	t := config.Transfer{BytesPerToken: int(min(a.KVTransferBytesPerToken.V, uint64(config.Unbounded))), BandwidthGBs: a.KVTransferBandwidthGBs.V}
	if a.DestinationMissing {
		t.Timing = config.DestinationMissing
	}
	return t
}

// Dynamo holds options of a live worker.
type Dynamo struct {
	EnableLocalIndexer      bool
	BootstrapPort           OptUint
	HandoffSessionTimeoutMs uint64
	HasReasoning            bool
	Reasoning               Reasoning // meaningful if HasReasoning
	ResponseReplayTracePath OptString
	ZMQKVEventsPort         OptUint
	ZMQReplayPort           OptUint
	RouterQueuePolicy       OptString // fcfs, lcfs or wspt
}

// Reasoning shapes the thinking part of a live answer.
type Reasoning struct {
	StartTokenID, EndTokenID uint64
	ThinkingRatio            float64
}

// Default is what an empty object means: one rank of vLLM.
func Default() Args { return defaults(config.VLLM) }

func defaults(b config.Backend) Args {
	return Args{
		Engine:                  config.Defaults(b),
		PrefillScheduleInterval: 1,
		MTPSeed:                 42,
		SGLang: SGLang{
			MaxPrefillTokens:   16384,
			ChunkedPrefillSize: 8192,
			ClipMaxNewTokens:   4096,
			Conservativeness:   1,
		},
		Dynamo: Dynamo{HandoffSessionTimeoutMs: 300000},
	}
}

// Options say what stands beside the arguments.
type Options struct {
	// Flag is the command-line flag whose argument is read, "" for the usual
	// one, and Role what its workers are for.
	Flag string
	Role config.Role
	// LoadProfile and LoadGrid load a file of pass durations; nil: those of
	// packages profile and gridfind. FindGrid finds the grid of an identity;
	// nil: among those that the program carries.
	LoadProfile func(path string) (*config.ProfileTable, error)
	LoadGrid    func(path string) (*profile.Grid, error)
	FindGrid    func(gridfind.Identity) (gridfind.File, error)
	// Timing is a file of pass durations that a flag of its own names;
	// TimingFlag is that flag, for sentences.
	Timing     TimingFile
	TimingFlag string
	// KVBytes is how many bytes of KV cache a token takes, as the flag KVFlag
	// says; 0: no flag says it.
	KVBytes uint64
	KVFlag  string
}

// Load reads the argument of a flag: JSON if its first visible character is
// one of { [ ", else the path of a file holding JSON. Every error is one
// sentence that names the place, what was found and what is accepted.
func Load(argument string) (Args, error) { return Options{}.Load(argument) }

// Load is the Load of this package with options.
func (o Options) Load(argument string) (Args, error) {
	source, data, err := o.read(argument)
	if err != nil {
		return Args{}, err
	}
	return o.Parse(source, data)
}

// read is the JSON that an argument is or names, and what to call it.
func (o Options) read(argument string) (source string, data []byte, err error) {
	flag := o.flag()
	switch text := strings.TrimLeft(argument, " \t\r\n"); {
	case text == "":
		return "", nil, errors.New(flag + " is empty; JSON or the path of a JSON file is accepted")
	case strings.IndexByte(`{["`, text[0]) >= 0:
		return flag, []byte(argument), nil
	}
	data, err = readFile(flag, argument)
	return argument, data, err
}

func (o Options) flag() string {
	if o.Flag != "" {
		return o.Flag
	}
	return Flag
}

func readFile(flag, path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot open %s: %w; JSON or the path of a JSON file is accepted", flag, path, cliutil.Reason(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: cannot read %s: %w", flag, path, cliutil.Reason(err))
	}
	if len(data) > maxFileBytes {
		return nil, fmt.Errorf("%s: %s is larger than %d MiB; a JSON object of engine arguments is accepted", flag, path, maxFileBytes>>20)
	}
	return data, nil
}

// Parse reads engine arguments from JSON text; source names it in errors.
// The result has passed config's check and holds no feature that is not
// built yet. A file of pass durations that it names is loaded.
func Parse(source string, data []byte) (Args, error) { return Options{}.Parse(source, data) }

// Parse is the Parse of this package with options.
func (o Options) Parse(source string, data []byte) (Args, error) {
	d := decoder{source: source, data: data, options: o}
	root, err := d.document()
	if err != nil {
		return Args{}, err
	}
	if root.kind != object {
		return Args{}, d.errorf(root, "engine arguments are %s; a JSON object is accepted", root.found())
	}
	steps := []func() error{func() error { return d.form(root) }, d.agree, d.kvBytes, d.check, d.checkBuilt, d.checkRole, d.loadTiming}
	for _, step := range steps {
		if err := step(); err != nil {
			return Args{}, err
		}
	}
	return d.args, nil
}

// form reads the document in the form it has.
func (d *decoder) form(root value) error {
	if isFlat(root) {
		return d.flatForm(root)
	}
	return d.canonical(root)
}
