package routerconfig

import (
	"math"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/core/config"
)

// field is one name of the configuration.
type field struct {
	name string
	set  func(*Config, value) error
	// get is the value on the wire and whether it is written; nil: never.
	get func(*Config) (any, bool)
}

// Names of the enumerations, in the order of their values.
var (
	queueWords  = []string{config.QueueFCFS: "fcfs", config.QueueLCFS: "lcfs", config.QueueWSPT: "wspt"}
	hashWords   = []string{config.PublicXXH3: "public-xxh3-v1", config.KeyedXXH3: "keyed-xxh3-v1"}
	modelWords  = []string{"none", "aic", "ais"} // the last two are one
	cacheWords  = []string{config.NoSharedCache: "none", config.HiCache: "hicache"}
	bypassWords = []string{config.BypassByISL: "isl_bounding", config.BypassByLoad: "prefill_load", config.BypassByEither: "isl_or_load"}
)

// real is a number that is always written, or, if rare is set, only where it
// differs from the default.
func real(name string, rare bool, at func(*Config) *float64) field {
	standard := Default()
	return field{name,
		func(c *Config, v value) (err error) {
			*at(c), err = v.real(wantNumber)
			return err
		},
		func(c *Config) (any, bool) { return *at(c), !rare || *at(c) != *at(&standard) },
	}
}

// optional is a number that may be null. Null is written unless rare is set.
func optional(name string, rare bool, at func(*Config) *float64) field {
	return field{name,
		func(c *Config, v value) (err error) {
			if v.kind == null {
				*at(c) = config.Unset
				return nil
			}
			x, err := v.real(wantNumber + wantOrNull)
			if err == nil && x < 0 {
				return v.refuse(wantNumber + wantOrNull) // config.Unset among them
			}
			*at(c) = x
			return err
		},
		func(c *Config) (any, bool) {
			if *at(c) == config.Unset {
				return nil, !rare
			}
			return *at(c), true
		},
	}
}

func flag(name string, rare bool, at func(*Config) *bool) field {
	standard := Default()
	return field{name,
		func(c *Config, v value) (err error) {
			*at(c), err = v.bool()
			return err
		},
		func(c *Config) (any, bool) { return *at(c), !rare || *at(c) != *at(&standard) },
	}
}

// word is one of a few texts; store and load its position.
func word(name string, words []string, rare bool, store func(*Config, int), load func(*Config) int) field {
	return field{name,
		func(c *Config, v value) error {
			i, err := v.word(words)
			if err == nil {
				store(c, i)
			}
			return err
		},
		func(c *Config) (any, bool) { return words[load(c)], !rare || load(c) != 0 },
	}
}

// textOrNull is a text, "" for null.
func textOrNull(name string, rare bool, at func(*Config) *string) field {
	return field{name,
		func(c *Config, v value) (err error) {
			if *at(c) = ""; v.kind == null {
				return nil
			}
			if v.kind != text || strings.TrimSpace(v.text) == "" {
				return v.refuse("a text that is not blank" + wantOrNull)
			}
			*at(c) = strings.TrimSpace(v.text)
			return nil
		},
		func(c *Config) (any, bool) {
			if *at(c) == "" {
				return nil, !rare
			}
			return *at(c), true
		},
	}
}

// ignored is a field of other releases: it is read and forgotten.
func ignored(name string, check func(value) error) field {
	return field{name: name, set: func(c *Config, v value) error { return check(v) }}
}

// fields lists all names, in the reference's order.
func fields() []field { return slices.Concat(costFields(), loadFields(), liveFields(), bypassFields()) }

// costFields say what a worker costs.
func costFields() []field {
	return []field{
		real("overlap_score_credit", false, func(c *Config) *float64 { return &c.OverlapCredit }),
		real("overlap_score_credit_decay", false, func(c *Config) *float64 { return &c.OverlapCreditDecay }),
		real("prefill_load_scale", false, func(c *Config) *float64 { return &c.PrefillLoadScale }),
		real("decode_active_request_weight", true, func(c *Config) *float64 { return &c.ActiveRequestWeight }),
		ignored("overlap_score_weight", func(v value) error { // Parse sees to it
			if v.kind == null {
				return nil
			}
			x, err := v.real(wantNumber + wantOrNull)
			if err == nil && x < 0 {
				err = v.refuse(wantNumber + wantOrNull)
			}
			return err
		}),
		real("host_cache_hit_weight", false, func(c *Config) *float64 { return &c.HostHitWeight }),
		real("disk_cache_hit_weight", false, func(c *Config) *float64 { return &c.DiskHitWeight }),
		real("router_temperature", false, func(c *Config) *float64 { return &c.Temperature }),
	}
}

// loadFields say what is known of the workers.
func loadFields() []field {
	return []field{
		flag("use_kv_events", false, func(c *Config) *bool { return &c.UseKVEvents }),
		ignored("durable_kv_events", func(v value) error {
			if on, err := v.bool(); err != nil || on {
				return v.refuse("false")
			}
			return nil
		}),
		flag("router_replica_sync", false, func(c *Config) *bool { return &c.ReplicaSync }),
		flag("router_track_active_blocks", false, func(c *Config) *bool { return &c.TrackActiveBlocks }),
		flag("router_track_output_blocks", false, func(c *Config) *bool { return &c.TrackOutputBlocks }),
		flag("router_assume_kv_reuse", false, func(c *Config) *bool { return &c.AssumeKVReuse }),
		flag("router_track_prefill_tokens", false, func(c *Config) *bool { return &c.TrackPrefillTokens }),
		word("router_tracking_hash", hashWords, true,
			func(c *Config, i int) { c.TrackingHash = config.TrackingHash(i) }, func(c *Config) int { return int(c.TrackingHash) }),
		textOrNull("router_tracking_key_file", true, func(c *Config) *string { return &c.TrackingKeyFile }),
		textOrNull("router_tracking_key_id", true, func(c *Config) *string { return &c.TrackingKeyID }),
		word("router_prefill_load_model", modelWords, false,
			func(c *Config, i int) { c.LoadModel = config.PrefillLoadModel(min(i, 1)) }, func(c *Config) int { return int(c.LoadModel) }),
	}
}

// liveFields are for live routers, but for when and how requests wait.
func liveFields() []field {
	return []field{
		ignored("router_snapshot_threshold", func(v value) error {
			if v.kind == null {
				return nil
			}
			_, err := v.whole(wantUint+wantOrNull, maxUint32)
			return err
		}),
		ignored("router_reset_states", func(v value) error {
			_, err := v.bool()
			return err
		}),
		real("router_ttl_secs", false, func(c *Config) *float64 { return &c.TTLSecs }),
		optional("router_queue_threshold", false, func(c *Config) *float64 { return &c.QueueThreshold }),
		textOrNull("router_policy_config", false, func(c *Config) *string { return &c.PolicyPath }),
		{"router_event_threads",
			func(c *Config, v value) error {
				n, err := v.whole(wantPositive, maxUint32)
				c.EventThreads = int(n)
				return err
			},
			func(c *Config) (any, bool) { return c.EventThreads, true }},
		flag("skip_initial_worker_wait", false, func(c *Config) *bool { return &c.SkipInitialWorkerWait }),
		word("router_queue_policy", queueWords, false,
			func(c *Config, i int) { c.QueuePolicy = config.QueuePolicy(i) }, func(c *Config) int { return int(c.QueuePolicy) }),
		flag("use_remote_indexer", false, func(c *Config) *bool { return &c.UseRemoteIndexer }),
		flag("serve_indexer", false, func(c *Config) *bool { return &c.ServeIndexer }),
		flag("enable_session_prefix_index", true, func(c *Config) *bool { return &c.SessionPrefixIndex }),
		optional("shared_cache_multiplier", true, func(c *Config) *float64 { return &c.SharedCacheMultiplier }),
		word("shared_cache_type", cacheWords, false,
			func(c *Config, i int) { c.SharedCache = config.SharedCache(i) }, func(c *Config) int { return int(c.SharedCache) }),
		optional("router_predicted_ttl_secs", false, func(c *Config) *float64 { return &c.PredictedTTLSecs }),
	}
}

// bypassFields say when a live router spares a prompt the prefill pool.
func bypassFields() []field {
	return []field{
		flag("conditional_disagg_enabled", true, func(c *Config) *bool { return &c.Bypass.Enabled }),
		word("conditional_disagg_policy", bypassWords, true,
			func(c *Config, i int) { c.Bypass.Policy = config.BypassPolicy(i) }, func(c *Config) int { return int(c.Bypass.Policy) }),
		{"conditional_disagg_eff_isl_threshold",
			func(c *Config, v value) error {
				n, err := v.whole(wantUint, math.MaxInt)
				c.Bypass.ISLThreshold = int(n)
				return err
			},
			func(c *Config) (any, bool) {
				return c.Bypass.ISLThreshold, c.Bypass.ISLThreshold != config.DefaultRouter().Bypass.ISLThreshold
			}},
		real("conditional_disagg_eff_isl_ratio_threshold", true, func(c *Config) *float64 { return &c.Bypass.RatioThreshold }),
		optional("conditional_disagg_prefill_busy_threshold", true, func(c *Config) *float64 { return &c.Bypass.PrefillBusy }),
		optional("conditional_disagg_decode_busy_threshold", true, func(c *Config) *float64 { return &c.Bypass.DecodeBusy }),
	}
}

func fieldNamed(name string) (field, bool) {
	for _, f := range fields() {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}

func fieldNames() (names []string) {
	for _, f := range fields() {
		names = append(names, f.name)
	}
	return names
}

// faultNames are the names of the fields that core/config finds fault with.
var faultNames = map[config.RouterField]string{
	config.FieldOverlapCredit:         "overlap_score_credit",
	config.FieldOverlapCreditDecay:    "overlap_score_credit_decay",
	config.FieldPrefillLoadScale:      "prefill_load_scale",
	config.FieldActiveRequestWeight:   "decode_active_request_weight",
	config.FieldHostHitWeight:         "host_cache_hit_weight",
	config.FieldDiskHitWeight:         "disk_cache_hit_weight",
	config.FieldRouterTemperature:     "router_temperature",
	config.FieldRouterTTL:             "router_ttl_secs",
	config.FieldQueueThreshold:        "router_queue_threshold",
	config.FieldEventThreads:          "router_event_threads",
	config.FieldSharedCacheMultiplier: "shared_cache_multiplier",
	config.FieldPredictedTTL:          "router_predicted_ttl_secs",
	config.FieldBypassRatio:           "conditional_disagg_eff_isl_ratio_threshold",
	config.FieldBypassISL:             "conditional_disagg_eff_isl_threshold",
	config.FieldBypassPrefillBusy:     "conditional_disagg_prefill_busy_threshold",
	config.FieldBypassDecodeBusy:      "conditional_disagg_decode_busy_threshold",
	config.FieldRouterEnums:           "router_queue_policy",
	config.FieldTrackOutputBlocks:     "router_track_output_blocks",
	config.FieldLoadModel:             "router_prefill_load_model",
	config.FieldTrackingKeyFile:       "router_tracking_key_file",
	config.FieldTrackingKeyID:         "router_tracking_key_id",
	config.FieldServeIndexer:          "serve_indexer",
	config.FieldSessionPrefixIndex:    "enable_session_prefix_index",
	config.FieldBypassPolicy:          "conditional_disagg_policy",
}

// codeAccepts says what a field accepts, for faults of the value alone.
var codeAccepts = map[config.RouterCode]string{
	config.RouterNegative:  wantNumber,
	config.RouterNotUnit:   wantFraction,
	config.RouterNoThreads: wantPositive,
}

// codeRules are the rules between fields.
var codeRules = map[config.RouterCode]string{
	config.RouterNegative:     "not " + wantNumber,
	config.RouterNotUnit:      "not " + wantFraction,
	config.RouterNoThreads:    "not " + wantPositive,
	config.RouterUnknown:      "not one of the values there are",
	config.NeedsActiveBlocks:  "output blocks are tracked with the prompts'; it needs router_track_active_blocks true",
	config.NeedsPrefillTokens: "there is no prompt work to predict; it needs router_track_prefill_tokens true",
	config.NeedsTrackingKey:   "router_tracking_hash \"keyed-xxh3-v1\" needs router_tracking_key_file and router_tracking_key_id",
	config.NeedsKeyedHash:     "it belongs to router_tracking_hash \"keyed-xxh3-v1\" only",
	config.RemoteAndServed:    "it excludes use_remote_indexer; one of the two is accepted",
	config.NeedsKVEvents:      "it needs use_kv_events true",
	config.NotWithRemote:      "it excludes use_remote_indexer",
	config.NeedsBusyThreshold: "nothing says when a prefill worker is busy; it needs conditional_disagg_prefill_busy_threshold or router_queue_threshold",
}
