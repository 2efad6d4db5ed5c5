package profile

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/config"
)

// Grid is a grid file: durations predicted for one model on one GPU, and what
// they were predicted for.
type Grid struct {
	Table          *config.GridTable
	Backend        string // vllm, sglang or trtllm; empty if not said, as the next three
	BackendVersion string
	System         string
	Model          string
	TP             int // GPUs per rank; 0 if not said, as the next four
	PP             int // stages of a pipeline
	MoETP, MoEEP   int // GPUs that share an expert, and groups that share the experts
	AttentionDP    int // ranks that share the experts
	NumGPUBlocks   int // KV capacity in blocks of BlockSize tokens; 0 if not said
	BlockSize      int // 0 if NumGPUBlocks is not said
}

// Blocks is the KV capacity in blocks of the given size, rounded down: what
// num_gpu_blocks is when nobody says so. It is 0 if the grid does not say, or
// if not one block fits.
func (g *Grid) Blocks(blockSize int) int {
	if g.NumGPUBlocks == 0 || blockSize < 1 {
		return 0
	}
	return int(min(int64(g.NumGPUBlocks)*int64(g.BlockSize)/int64(blockSize), config.MaxGPUBlocks))
}

// gridFields are the fields of a grid file. What is read of the first two lines
// stands in Grid; the third line is for people.
func gridFields() []string {
	return []string{
		"backend", "backend_version", "system", "model", "tp", "num_gpu_blocks", "block_size", "prefill", "decode",
		"pp", "moe_tp", "moe_ep", "attention_dp",
		"precision", "aiconfigurator_core", "exporter", "source",
	}
}

// backendNames stand in the order of config.Backend.
func backendNames() []string { return []string{"vllm", "sglang", "trtllm"} }

// LoadGrid loads a grid.
func LoadGrid(path string) (*Grid, error) {
	data, err := readJSON(path)
	if err != nil {
		return nil, err
	}
	return ParseGrid(path, data)
}

// ParseGrid is LoadGrid for a file in memory, which path names in sentences.
func ParseGrid(path string, data []byte) (*Grid, error) {
	if isArchive(data) {
		return nil, fmt.Errorf("%s: is a ZIP archive, as profiles are; a grid in JSON is accepted", path)
	}
	d, err := parseJSON(path, data)
	if err != nil {
		return nil, err
	}
	top, err := d.object(d.root, wholeFile, gridFields())
	if err != nil {
		return nil, err
	}
	g := &Grid{Table: &config.GridTable{}}
	if err := d.identity(top, g); err != nil {
		return nil, err
	}
	if err := d.capacity(top, g); err != nil {
		return nil, err
	}
	t := g.Table
	if err := d.plane(top, "prefill", []axisField{{"batch", &t.PrefillBatch}, {"isl", &t.PrefillISL}, {"prefix", &t.PrefillPrefix}}, &t.PrefillMs); err != nil {
		return nil, err
	}
	if err := d.plane(top, "decode", []axisField{{"batch", &t.DecodeBatch}, {"context", &t.DecodeContext}}, &t.DecodeMs); err != nil {
		return nil, err
	}
	if fault := t.Check(); !fault.OK() {
		return nil, gridFault(path, t, fault)
	}
	return g, nil
}

// given is a field that is there and not null.
func (m members) given(name string) (node, bool) {
	n, ok := m.values[name]
	return n, ok && n.value != nil
}

// identity reads what the grid was made for.
func (d document) identity(top members, g *Grid) error {
	for _, f := range []struct {
		name string
		into *string
	}{{"backend", &g.Backend}, {"backend_version", &g.BackendVersion}, {"system", &g.System}, {"model", &g.Model}} {
		n, ok := top.given(f.name)
		if !ok {
			continue
		}
		var err error
		if *f.into, err = d.text(n, f.name); err != nil {
			return err
		}
		if f.name == "backend" && !slices.Contains(backendNames(), g.Backend) {
			return d.errorf(f.name, `is %s; "vllm", "sglang" or "trtllm" is accepted`, n.found())
		}
	}
	for _, f := range []struct {
		name string
		into *int
	}{{"tp", &g.TP}, {"pp", &g.PP}, {"moe_tp", &g.MoETP}, {"moe_ep", &g.MoEEP}, {"attention_dp", &g.AttentionDP}} {
		n, ok := top.given(f.name)
		if !ok {
			continue
		}
		var err error
		if *f.into, err = d.count(n, f.name, config.MaxTensorSize); err != nil {
			return err
		}
	}
	return nil
}

// capacity reads the KV capacity. Its blocks are those the backend has by
// default if the file does not say otherwise.
func (d document) capacity(top members, g *Grid) error {
	n, ok := top.given("num_gpu_blocks")
	if !ok {
		return nil
	}
	var err error
	if g.NumGPUBlocks, err = d.count(n, "num_gpu_blocks", config.MaxGPUBlocks); err != nil {
		return err
	}
	if n, ok := top.given("block_size"); ok {
		if g.BlockSize, err = d.count(n, "block_size", config.MaxBlockSize); err != nil {
			return err
		}
	} else if backend := slices.Index(backendNames(), g.Backend); backend >= 0 {
		g.BlockSize = config.DefaultBlockSize(config.Backend(backend))
	} else {
		return d.errorf("num_gpu_blocks", "is %d blocks of unknown size; block_size or backend is accepted beside it", g.NumGPUBlocks)
	}
	if tokens := int64(g.NumGPUBlocks) * int64(g.BlockSize); tokens > config.MaxTotalSlots {
		return d.errorf("num_gpu_blocks", "is %d blocks of %d tokens; at most %d tokens are accepted", g.NumGPUBlocks, g.BlockSize, int64(config.MaxTotalSlots))
	}
	return nil
}

type axisField struct {
	name string
	into *[]float64
}

// plane reads the axes of a field and the durations over them.
func (d document) plane(top members, name string, axes []axisField, ms *[]float64) error {
	var known []string
	for _, a := range axes {
		known = append(known, a.name)
	}
	known = append(known, "ms")
	n, ok := top.values[name]
	if !ok {
		return fmt.Errorf("%s: has no field %s; an object with %s is accepted", d.path, name, list(known))
	}
	m, err := d.object(n, name, known)
	if err != nil {
		return err
	}
	for _, field := range known {
		if _, ok := m.values[field]; !ok {
			return fmt.Errorf("%s: has no field %s.%s; an object with %s is accepted", d.path, name, field, list(known))
		}
	}
	for _, a := range axes {
		if *a.into, err = d.numbers(m.values[a.name], join(name, a.name)); err != nil {
			return err
		}
	}
	return d.block(m.values["ms"], join(name, "ms"), name, axes, ms)
}

// block reads nested arrays, one level for each axis.
func (d document) block(n node, at, name string, axes []axisField, ms *[]float64) error {
	rows, ok := n.value.([]node)
	if !ok {
		return d.errorf(at, "is %s; an array is accepted", n.found())
	}
	if want := len(*axes[0].into); len(rows) != want {
		return d.errorf(at, "has %s; %d are accepted, one for each of %s.%s", values(len(rows)), want, name, axes[0].name)
	}
	if len(axes) == 1 {
		row, err := d.numbers(n, at)
		*ms = append(*ms, row...)
		return err
	}
	for i, row := range rows {
		if err := d.block(row, at+"["+strconv.Itoa(i)+"]", name, axes[1:], ms); err != nil {
			return err
		}
	}
	return nil
}

// gridFault words a fault of a grid's table.
func gridFault(path string, g *config.GridTable, f config.TableFault) error {
	pb, pi, pp := array{name: "prefill.batch", data: g.PrefillBatch}, array{name: "prefill.isl", data: g.PrefillISL}, array{name: "prefill.prefix", data: g.PrefillPrefix}
	db, dc := array{name: "decode.batch", data: g.DecodeBatch}, array{name: "decode.context", data: g.DecodeContext}
	of := map[config.Field]array{
		config.FieldGridPrefillBatch:  pb,
		config.FieldGridPrefillISL:    pi,
		config.FieldGridPrefillPrefix: pp,
		config.FieldGridPrefillMs:     {name: "prefill.ms", data: g.PrefillMs, axes: []array{pb, pi, pp}},
		config.FieldGridDecodeBatch:   db,
		config.FieldGridDecodeContext: dc,
		config.FieldGridDecodeMs:      {name: "decode.ms", data: g.DecodeMs, axes: []array{db, dc}},
	}
	return of[f.Field].fault(path, f)
}
