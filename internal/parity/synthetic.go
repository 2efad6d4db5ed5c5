package parity

import (
	"errors"
	"fmt"
	"math"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/core/synth"
	"github.com/dryserve/dryserve/core/workload"
)

// syntheticKeys are the arguments that only synthetic workloads have.
var syntheticKeys = map[string]bool{
	"request_rate": true, "arrival_interval_ms": true, "arrival_seed": true, "turns_per_session": true,
	"shared_prefix_ratio": true, "num_prefix_groups": true, "inter_turn_delay_ms": true,
}

// Synthetic makes the workload of sizes and keyword arguments as decoded from
// JSON.
func Synthetic(sizes, kwargs map[string]any, c config.Replay) (*workload.Workload, error) {
	s := synth.Spec{Turns: 1, ArrivalSeed: synth.DefaultArrivalSeed, BlockSize: c.Engine.BlockSize}
	counts := map[string]*int{
		"input_tokens": &s.InputTokens, "output_tokens": &s.OutputTokens, "request_count": &s.Sessions, "turns_per_session": &s.Turns,
	}
	numbers := map[string]*float64{
		"request_rate": &s.RatePerS, "arrival_interval_ms": &s.IntervalMs, "shared_prefix_ratio": &s.PrefixRatio, "inter_turn_delay_ms": &s.TurnDelayMs,
	}
	controllers := 0
	if c.Concurrency > 0 {
		controllers++
	}
	for _, from := range []map[string]any{sizes, kwargs} {
		for key, value := range from {
			if value == nil || counts[key] == nil && !syntheticKeys[key] {
				continue
			}
			number, err := toFloat(value)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			switch {
			case key == "arrival_seed":
				s.ArrivalSeed = uint64(number)
			case key == "num_prefix_groups" && (number < 0 || number > math.MaxUint32):
				return nil, fmt.Errorf("%s: %v is out of range", key, number)
			case key == "num_prefix_groups":
				s.PrefixGroups = uint32(number)
			case counts[key] != nil:
				*counts[key] = int(number)
			default:
				*numbers[key] = number
			}
			switch key {
			case "request_rate":
				controllers, s.Arrival = controllers+1, synth.Poisson
			case "arrival_interval_ms":
				controllers, s.Arrival = controllers+1, synth.Constant
			}
		}
	}
	if controllers != 1 {
		return nil, errors.New("want one of replay_concurrency, request_rate and arrival_interval_ms")
	}
	if field := s.Check(); field != synth.None {
		return nil, fmt.Errorf("field %d of the workload is out of range", field)
	}
	w, f := synth.Build(s, workload.Options{Concurrency: c.Concurrency > 0, ArrivalSpeedup: c.ArrivalSpeedup})
	if f.Code != workload.OK {
		return nil, fmt.Errorf("fault %d", f.Code)
	}
	return w, nil
}
