package routerconfig

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// Every fault is one sentence: where, what was found, what is accepted.
func TestSentences(t *testing.T) {
	for text, want := range map[string]string{
		"[]":                          "cfg: line 1: the router configuration is a list; an object is accepted",
		"{\n\"a\" 1}":                 "cfg: line 2: not JSON: invalid character '1' after object key",
		"":                            "cfg: line 1: not JSON: unexpected end of JSON input",
		"{\n\"router_temprature\":1}": "cfg: line 2: unknown field \"router_temprature\"; did you mean router_temperature?",
		`{"router_temperature":-1}`:   "cfg: line 1: router_temperature is -1; a finite number of at least 0 is accepted",
		`{"router_temperature":"x"}`:  "cfg: line 1: router_temperature is \"x\"; a finite number of at least 0 is accepted",
		`{"router_temperature":1,
"router_temperature":2}`: "cfg: line 2: router_temperature is given twice, first in line 1; once is accepted",
		`{"host_cache_hit_weight":1.5}`:                                           "cfg: line 1: host_cache_hit_weight is 1.5; a number from 0 to 1 is accepted",
		`{"router_event_threads":0}`:                                              "cfg: line 1: router_event_threads is 0; a whole number of at least 1 is accepted",
		`{"router_event_threads":4.0}`:                                            "cfg: line 1: router_event_threads is 4.0; a whole number of at least 1 is accepted",
		`{"router_event_threads":5000000000}`:                                     "cfg: line 1: router_event_threads is 5000000000; at most 4294967295 is accepted",
		`{"router_queue_policy":"lifo"}`:                                          "cfg: line 1: router_queue_policy is \"lifo\"; \"fcfs\", \"lcfs\" or \"wspt\" is accepted",
		`{"router_queue_threshold":-1}`:                                           "cfg: line 1: router_queue_threshold is -1; a finite number of at least 0 or null is accepted",
		`{"use_kv_events":1}`:                                                     "cfg: line 1: use_kv_events is 1; true or false is accepted",
		`{"durable_kv_events":true}`:                                              "cfg: line 1: durable_kv_events is true; false is accepted",
		`{"overlap_score_weight":-2}`:                                             "cfg: line 1: overlap_score_weight is -2; a finite number of at least 0 or null is accepted",
		`{"router_prefill_load_model":"aic","router_track_prefill_tokens":false}`: "cfg: line 1: router_prefill_load_model: there is no prompt work to predict; it needs router_track_prefill_tokens true",
		`{"router_tracking_hash":"keyed-xxh3-v1"}`:                                "cfg: router_tracking_key_file: router_tracking_hash \"keyed-xxh3-v1\" needs router_tracking_key_file and router_tracking_key_id",
		`{"router_tracking_key_id":" "}`:                                          "cfg: line 1: router_tracking_key_id is \" \"; a text that is not blank or null is accepted",
		`{"router_policy_config":"/no/such.yaml"}`:                                "cfg: line 1: router_policy_config: /no/such.yaml: no such file or directory",
	} {
		_, err := Parse("cfg", []byte(text), Options{})
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestPolicySentences(t *testing.T) {
	profile := "default_policy_family: a\nuncached_isl_buckets: [{min_tokens: 0, bucket: b}]\npolicy_classes:\n"
	for text, want := range map[string]string{
		"":                                  "p: the policy file says nothing; a profile (default_policy_family, uncached_isl_buckets, policy_classes), models, router, worker_selection or request_classifier is accepted",
		"- a":                               "p: line 1: the policy file is a list; an object is accepted",
		"a: [":                              "p: not YAML: line 1: did not find expected node content",
		"modles: {}":                        "p: line 1: unknown field \"modles\"; did you mean models?",
		"router:\n  router_temperature: 1":  "p: line 2: unknown field \"router.router_temperature\"; known fields here are " + strings.Join(settingNames, ", "),
		"router: {router_event_threads: x}": "p: line 1: router.router_event_threads is \"x\"; a whole number of at least 1 is accepted",
		"default_policy_family: a":          "p: line 1: a profile has 1 of default_policy_family, uncached_isl_buckets, policy_classes; all three are accepted",
		profile + "- {name: x, policy_family: a, cache_bucket: b}":                                 "p: line 4: policy_classes[0] has no quantum; a class needs one, a whole number of at least 1",
		profile + "- {name: x, quantum: 0, policy_family: a, cache_bucket: b}":                     "p: line 1: policy_classes[0] (\"x\") has quantum 0; a whole number of at least 1 is accepted",
		profile + "- {name: x, quantum: 1, policy_family: a, cache_bucket: b, queue_policy: lcfs}": "p: line 1: policy_classes[0] (\"x\") has queue_policy \"lcfs\"; \"fcfs\" or \"wspt\" is accepted",
		profile + "- {name: x, quantum: 1, policy_family: a, cache_bucket: c}":                     "p: line 1: policy_classes[0] has cache_bucket \"c\", which uncached_isl_buckets lacks",
		"models:\n  m: {default_policy_family: z}":                                                 "p: line 2: model \"m\": a profile has 1 of default_policy_family, uncached_isl_buckets, policy_classes; all three are accepted",
	} {
		_, err := ParsePolicy("p", []byte(text))
		if err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
}

// A policy file wins over the configuration that names it; a model may have a
// profile of its own.
func TestPolicyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	text := `
router: {router_track_prefill_tokens: false, router_approximate_cache_policy: lru}
models:
  big:
    default_policy_family: f
    uncached_isl_buckets: &buckets [{min_tokens: 0, bucket: b}]
    policy_classes: [{name: x, quantum: 1, policy_family: f, cache_bucket: b}]
default_policy_family: g
uncached_isl_buckets: *buckets
policy_classes: [{name: y, quantum: 2, policy_family: g, cache_bucket: b, prefill_busy_threshold: 7}]
worker_selection: {aggregated: default}
`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for model, family := range map[string]string{"": "g", "small": "g", "big": "f"} {
		c, err := Parse("cfg", []byte("{}"), Options{Model: model, PolicyPath: path})
		if err != nil {
			t.Fatal(err)
		}
		if c.Policy.DefaultFamily != family || c.TrackPrefillTokens || c.Replayable() != nil || c.PolicyPath != path {
			t.Errorf("%s: %+v", model, c)
		}
	}
	if _, err := Parse("cfg", []byte(`{"router_prefill_load_model":"aic"}`), Options{PolicyPath: path}); err == nil || !strings.HasPrefix(err.Error(), "cfg: line 1: router_prefill_load_model: ") {
		t.Errorf("a setting does not count in a rule: %v", err)
	}
	for text, words := range map[string]string{
		"request_classifier: {type: t}":      "request_classifier names a plugin",
		"worker_selection: {prefill: fancy}": "worker_selection names \"fancy\"",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Parse("cfg", []byte("{}"), Options{PolicyPath: path})
		if err != nil || c.Replayable() == nil || !strings.Contains(c.Replayable().Error(), words) {
			t.Errorf("%s: %v, %v", text, err, c.Replayable())
		}
	}
}

// What is written is read as the same.
func TestMarshalReads(t *testing.T) {
	c := Default()
	c.OverlapCredit, c.ActiveRequestWeight, c.QueueThreshold, c.SharedCacheMultiplier = 0.1, 2.5, 1e-7, 0.25
	c.QueuePolicy, c.LoadModel, c.SharedCache, c.SessionPrefixIndex = config.QueueWSPT, config.PredictedLoad, config.HiCache, true
	c.TrackingHash, c.TrackingKeyFile, c.TrackingKeyID = config.KeyedXXH3, "k", "id"
	c.Bypass = config.Bypass{Enabled: true, Policy: config.BypassByEither, ISLThreshold: 1, RatioThreshold: 0.5, PrefillBusy: 3, DecodeBusy: 4}
	wire, err := c.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse("wire", wire, Options{})
	if err != nil || again != c {
		t.Errorf("%s: %v\n%+v\n%+v", wire, err, again, c)
	}
}

func TestTrackingKeyFile(t *testing.T) {
	c := Default()
	c.TrackingHash, c.TrackingKeyID = config.KeyedXXH3, "id"
	c.TrackingKeyFile = filepath.Join(t.TempDir(), "key")
	if _, err := c.Tracking(Subject{BlockSize: 4}); err == nil || !strings.HasSuffix(err.Error(), "key: no such file or directory") {
		t.Error(err)
	}
	if err := os.WriteFile(c.TrackingKeyFile, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Tracking(Subject{BlockSize: 4}); err == nil || !strings.HasSuffix(err.Error(), "has 5 bytes; 32 are accepted") {
		t.Error(err)
	}
}
