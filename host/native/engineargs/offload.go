package engineargs

import (
	"fmt"
	"math"
	"strings"

	"github.com/dryserve/dryserve/core/config"
)

// hostScopeWords are the scopes of host memory in the order of their values.
var hostScopeWords = []string{config.RankLocal: "dp_rank_local", config.ClusterShared: "cluster_shared"}

// hostOffload reads engine.native_host_offload.
func (d *decoder) hostOffload(v value) error {
	return d.section(v, hostOffloadFields(), 1, func() { d.args.Engine.HostOffload = config.DefaultHostOffload(0) })
}

// section reads an object that may be left out or null; else begin sets the
// defaults of its fields, of which the first so many must stand there.
func (d *decoder) section(v value, fields []field, required int, begin func()) error {
	switch v.kind {
	case null:
		return nil
	case object:
	default:
		return errUnaccepted
	}
	begin()
	if err := d.walk(v, fields); err != nil {
		return err
	}
	return d.require(v, fields[:required])
}

// notNegative stores a number that is not below 0.
func notNegative(at func(*config.Engine) *float64) setter {
	return func(d *decoder, v value) error {
		x, err := v.real()
		if err != nil || x < 0 {
			return errUnaccepted
		}
		*at(&d.args.Engine) = x
		return nil
	}
}

func hostOffloadFields() []field {
	h := func(name, accepts string, set setter) field {
		return field{name, "engine.native_host_offload." + name, accepts, set}
	}
	real := func(at func(*config.HostOffload) *float64) setter {
		return notNegative(func(e *config.Engine) *float64 { return at(&e.HostOffload) })
	}
	return []field{
		h("num_host_blocks", wantPositive, positive(setCount(config.MaxGPUBlocks+1, func(a *Args) *int { return &a.Engine.HostOffload.Blocks }))),
		h("scope", oneOf(hostScopeWords), setWord(hostScopeWords, func(a *Args, i int) { a.Engine.HostOffload.Scope = config.HostScope(i) })),
		h("d2h_bandwidth_gbps", wantNumber, real(func(h *config.HostOffload) *float64 { return &h.D2HGBs })),
		h("h2d_bandwidth_gbps", wantNumber, real(func(h *config.HostOffload) *float64 { return &h.H2DGBs })),
		h("shared_d2h_bandwidth_gbps", wantNumber, real(func(h *config.HostOffload) *float64 { return &h.SharedD2HGBs })),
		h("shared_h2d_bandwidth_gbps", wantNumber, real(func(h *config.HostOffload) *float64 { return &h.SharedH2DGBs })),
		h("latency_to_first_byte_ms", wantNumber, real(func(h *config.HostOffload) *float64 { return &h.FirstByteLatencyMs })),
		h("kv_layout_id", wantText, setOptText(func(a *Args) *OptString { return &a.KVLayoutID })),
	}
}

// diskScopeWords are the scopes of disks in the order of their values.
var diskScopeWords = []string{config.WorkerLocal: "worker_local", config.DiskShared: "cluster_shared"}

// diskOffload reads engine.g3_offload.
func (d *decoder) diskOffload(v value) error {
	return d.section(v, diskOffloadFields(), 2, func() { d.args.Engine.DiskOffload = config.DefaultDiskOffload(0) })
}

func diskOffloadFields() []field {
	g := func(name, accepts string, set setter) field {
		return field{name, "engine.g3_offload." + name, accepts, set}
	}
	real := func(at func(*config.DiskOffload) *float64) setter {
		return notNegative(func(e *config.Engine) *float64 { return at(&e.DiskOffload) })
	}
	return []field{
		g("scope", oneOf(diskScopeWords), setWord(diskScopeWords, func(a *Args, i int) { a.Engine.DiskOffload.Scope = config.DiskScope(i) })),
		g("num_g3_blocks", wantPositive, positive(setCount(config.MaxGPUBlocks+1, func(a *Args) *int { return &a.Engine.DiskOffload.Blocks }))),
		g("latency_to_first_byte_ms", wantNumber, real(func(g *config.DiskOffload) *float64 { return &g.FirstByteLatencyMs })),
		g("read_bandwidth_gbps", wantNumber, real(func(g *config.DiskOffload) *float64 { return &g.ReadGBs })),
		g("write_bandwidth_gbps", wantNumber, real(func(g *config.DiskOffload) *float64 { return &g.WriteGBs })),
		g("shared_read_bandwidth_gbps", wantNumber, real(func(g *config.DiskOffload) *float64 { return &g.SharedReadGBs })),
		g("shared_write_bandwidth_gbps", wantNumber, real(func(g *config.DiskOffload) *float64 { return &g.SharedWriteGBs })),
	}
}

// checkOffload puts the number of bytes where the engine reads it, which it
// does with host memory only.
func (d *decoder) checkOffload() error {
	e := &d.args.Engine
	if e.HostOffload.Blocks == 0 {
		return nil
	}
	if e.HostOffload.Scope == config.ClusterShared && strings.TrimSpace(d.args.KVLayoutID.V) == "" {
		const key = "engine.native_host_offload.kv_layout_id"
		if _, said := d.at[key]; !said {
			return d.errorf(d.at["engine.native_host_offload"], "engine.native_host_offload has no kv_layout_id; a text that is not blank is accepted with scope cluster_shared")
		}
		return d.only(key, "a text that is not blank is accepted with scope cluster_shared")
	}
	e.KVCacheBytesPerToken = int(min(d.args.KVCacheBytesPerToken.V, math.MaxInt64))
	return nil
}

// diskFault words what core/config says of disks.
func (d *decoder) diskFault(f config.Fault) error {
	key := "engine.g3_offload"
	host := "native_host_offload"
	if d.older {
		key, host = "num_g3_blocks", "num_g2_blocks"
	}
	switch f.Code {
	case config.NotAggregated:
		return d.only(key, "null is accepted for worker_type "+roleWords[d.args.Engine.Role])
	case config.NeedsHostOffload:
		return d.only(key, "null is accepted without "+host)
	case config.NeedsRankLocal:
		return d.only(key, "null is accepted with native_host_offload of scope cluster_shared; a disk behind shared host memory is not built")
	case config.Exclusive:
		return d.only(key, "null is accepted with a dp_size above 1")
	case config.TakesNoTime:
		return d.only(key, "a latency_to_first_byte_ms or a limit of the bandwidth of reads is accepted; reads from a disk that take no time are not built")
	}
	return d.only(key, fmt.Sprintf("at most %d blocks are accepted", config.MaxGPUBlocks))
}

// offloadFault words what core/config says of host memory.
func (d *decoder) offloadFault(f config.Fault) error {
	key := "engine.native_host_offload"
	bytes := "engine.kv_cache_bytes_per_token"
	name := "kv_cache_bytes_per_token"
	if d.older {
		key, bytes, name = "num_g2_blocks", "engine.kv_transfer_bytes_per_token", "kv_bytes_per_token"
	}
	e := d.args.Engine
	switch f.Code {
	case config.NeedsVLLM:
		return d.only(key, "null is accepted for backend "+backendWords[e.Backend])
	case config.NeedsPrefixCaching:
		return d.only(key, "null is accepted without enable_prefix_caching")
	case config.Exclusive:
		return d.only(key, "null is accepted with aic_nextn")
	case config.NotPositive:
		return d.only(key, "null is accepted without "+name)
	case config.TooLarge:
		if f.Field == config.FieldKVCacheBytes {
			return d.only(bytes, "a product of offloaded blocks, block_size and bytes per token below 2^63 is accepted")
		}
	}
	return d.only(key, fmt.Sprintf("at most %d host blocks are accepted", config.MaxGPUBlocks))
}

// flatHost is what the flat form says of host memory and disk: one pool a rank.
type flatHost struct {
	blocks int
	d2h    OptFloat
	h2d    OptFloat

	diskBlocks  int
	write, read OptFloat
}

func flatHostFields() []field {
	blocks := func(at func(*decoder) *int) setter {
		return func(d *decoder, v value) error {
			if v.kind == null {
				return nil
			}
			n, err := v.within(0, config.MaxGPUBlocks)
			*at(d) = int(n)
			return err
		}
	}
	bandwidth := func(at func(*decoder) *OptFloat) setter {
		return func(d *decoder, v value) error {
			if v.kind == null {
				return nil
			}
			x, err := v.real()
			if err != nil || x < 0 {
				return errUnaccepted
			}
			*at(d) = OptFloat{true, x}
			return nil
		}
	}
	return []field{
		{"num_g2_blocks", "num_g2_blocks", wantUint + " or null", blocks(func(d *decoder) *int { return &d.flatHost.blocks })},
		{"num_g3_blocks", "num_g3_blocks", wantUint + " or null", blocks(func(d *decoder) *int { return &d.flatHost.diskBlocks })},
		{"bandwidth_g2_to_g3_gbps", "bandwidth_g2_to_g3_gbps", wantNumber + " or null", bandwidth(func(d *decoder) *OptFloat { return &d.flatHost.write })},
		{"bandwidth_g3_to_g2_gbps", "bandwidth_g3_to_g2_gbps", wantNumber + " or null", bandwidth(func(d *decoder) *OptFloat { return &d.flatHost.read })},
		{"bandwidth_g1_to_g2_gbps", "bandwidth_g1_to_g2_gbps", wantNumber + " or null", bandwidth(func(d *decoder) *OptFloat { return &d.flatHost.d2h })},
		{"bandwidth_g2_to_g1_gbps", "bandwidth_g2_to_g1_gbps", wantNumber + " or null", bandwidth(func(d *decoder) *OptFloat { return &d.flatHost.h2d })},
	}
}

// flatOffload makes native host offload of the flat form's pools. The older
// release moved blocks in batches when the GPU dropped them; the model here is
// that of the newer one.
func (d *decoder) flatOffload() {
	h := d.flatHost
	if h.diskBlocks > 0 {
		o := config.DefaultDiskOffload(h.diskBlocks)
		if h.write.Set {
			o.WriteGBs = h.write.V
		}
		if h.read.Set {
			o.ReadGBs = h.read.V
		}
		d.args.Engine.DiskOffload = o
	}
	if h.blocks == 0 {
		return
	}
	o := config.DefaultHostOffload(h.blocks)
	if h.d2h.Set {
		o.D2HGBs = h.d2h.V
	}
	if h.h2d.Set {
		o.H2DGBs = h.h2d.V
	}
	d.args.Engine.HostOffload = o
	d.args.KVCacheBytesPerToken = d.args.KVTransferBytesPerToken
	if v, said := d.at["offload_batch_size"]; said && v.kind != null {
		d.later(v, "copying blocks to host memory in batches", "null")
	}
}
