package parity

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/workload"
	"github.com/dryserve/dryserve/host/native/tracefile"
	"github.com/dryserve/dryserve/internal/gen"
)

// traceKeys are the arguments that say how a trace is read.
var traceKeys = map[string]bool{
	"trace_format": true, "trace_shared_prefix_ratio": true, "trace_num_prefix_groups": true, "execution_model": true,
	"weka_nested_timestamp_basis": true,
}

// Workload makes the workload of a case whose files, if it has any, stand in
// dir.
func Workload(dir string, c *gen.ReplayCase, cfg config.Replay) (*workload.Workload, error) {
	if c.Synthetic != nil {
		return Synthetic(c.Synthetic, c.Kwargs, cfg)
	}
	options, err := Options(c.Kwargs, cfg)
	if err != nil {
		return nil, err
	}
	var paths []string
	for _, name := range c.Files {
		paths = append(paths, filepath.Join(dir, name))
	}
	t, err := tracefile.Load(context.Background(), paths, options)
	return t.Workload, err
}

// Options are those of a trace with keyword arguments as decoded from JSON.
func Options(kwargs map[string]any, c config.Replay) (tracefile.Options, error) {
	o := tracefile.Options{
		Format: tracefile.Mooncake, TraceBlockSize: c.TraceBlockSize, Concurrency: c.Concurrency > 0, ArrivalSpeedup: c.ArrivalSpeedup,
		Lanes: c.Lanes,
	}
	if kwargs["trace_block_size"] != nil {
		o.WantBlockSize = c.TraceBlockSize
	}
	if name, ok := kwargs["trace_format"].(string); ok {
		if o.Format, ok = tracefile.ParseFormat(name); !ok {
			return o, fmt.Errorf("trace_format: %s is unknown", name)
		}
	}
	if name, ok := kwargs["execution_model"].(string); ok {
		if o.ExecutionModel = strings.TrimSpace(name); o.ExecutionModel == "" {
			return o, fmt.Errorf("execution_model is blank")
		}
	}
	if name, ok := kwargs["weka_nested_timestamp_basis"].(string); ok {
		if o.NestedBasis, ok = tracefile.ParseBasis(name); !ok || o.Format != tracefile.Weka {
			return o, fmt.Errorf("weka_nested_timestamp_basis: %s is unknown or the trace is no Weka trace", name)
		}
	}
	if ratio := kwargs["trace_shared_prefix_ratio"]; ratio != nil {
		x, err := toFloat(ratio)
		if err != nil || o.Format == tracefile.AppliedCompute && !(x >= 0 && x <= 1) {
			return o, fmt.Errorf("trace_shared_prefix_ratio: %v is not from 0 to 1", ratio)
		}
		o.SharedPrefixRatio = x
	}
	if groups := kwargs["trace_num_prefix_groups"]; groups != nil {
		x, err := toFloat(groups)
		if err != nil || x < 0 || x > math.MaxUint32 {
			return o, fmt.Errorf("trace_num_prefix_groups: %v is out of range", groups)
		}
		o.PrefixGroups = uint32(x)
	}
	return o, nil
}
