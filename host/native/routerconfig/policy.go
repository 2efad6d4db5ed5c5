package routerconfig

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dryserve/dryserve/core/config"
	"github.com/dryserve/dryserve/host/native/cliutil"
)

// Policy is a policy file.
type Policy struct {
	root     *config.RouterPolicy
	models   map[string]*config.RouterPolicy
	settings []member // of the router; checked by name only

	// WorkerSelection is the first policy but "default" that workers are to be
	// chosen by; Classifier: requests are to be classified by a plugin.
	WorkerSelection string
	Classifier      bool
}

// Profile is the classes for a model: its own profile, else the root's, nil if
// there is neither.
func (p *Policy) Profile(model string) *config.RouterPolicy {
	if own, ok := p.models[model]; ok {
		return own
	}
	return p.root
}

// Fields of a policy file.
var (
	profileNames = []string{"default_policy_family", "uncached_isl_buckets", "policy_classes"}
	rootNames    = slices.Concat(profileNames, []string{"models", "router", "worker_selection", "request_classifier"})
	classNames   = []string{
		"name", "policy_family", "cache_bucket", "queue_policy", "quantum", "prefill_busy_threshold", "prefill_busy_threshold_frac",
		"request_queue_limit_per_worker", "raw_isl_token_queue_limit_per_worker", "cached_token_queue_limit_per_worker",
	}
	bucketNames = []string{"min_tokens", "bucket"}
	// settingNames are the fields of the router that a policy file may set.
	settingNames = []string{
		"host_cache_hit_weight", "disk_cache_hit_weight", "use_kv_events", "router_replica_sync", "router_track_active_blocks",
		"router_track_output_blocks", "router_assume_kv_reuse", "router_track_prefill_tokens", "router_tracking_hash",
		"router_tracking_key_file", "router_tracking_key_id", "router_prefill_load_model", "router_ttl_secs",
		"router_approximate_cache_policy", "router_event_threads", "use_remote_indexer", "serve_indexer",
		"enable_session_prefix_index", "shared_cache_type", "router_predicted_ttl_secs",
	}
)

// ParsePolicy reads a policy file. source names it in sentences.
func ParsePolicy(source string, data []byte) (*Policy, error) {
	doc, err := parseYAML(source, data)
	if err != nil {
		return nil, err
	}
	p := &Policy{models: map[string]*config.RouterPolicy{}}
	if doc.kind == object {
		if err := p.read(doc); err != nil {
			return nil, err
		}
	} else if doc.kind != null {
		return nil, doc.errorf("the policy file is %s; an object is accepted", doc.found())
	}
	if p.root == nil && len(p.models) == 0 && !slices.ContainsFunc(doc.members, func(m member) bool {
		return m.name == "router" || m.name == "worker_selection" || m.name == "request_classifier"
	}) {
		return nil, fmt.Errorf("%s: the policy file says nothing; a profile (%s), models, router, worker_selection or request_classifier is accepted",
			source, strings.Join(profileNames, ", "))
	}
	return p, nil
}

func (p *Policy) read(doc value) error {
	for _, m := range doc.members {
		var err error
		switch v := m.value; m.name {
		case "models":
			err = p.readModels(v)
		case "router":
			err = p.readSettings(v)
		case "worker_selection":
			err = p.readSelection(v)
		case "request_classifier":
			p.Classifier = v.kind != null
		default:
			if !slices.Contains(profileNames, m.name) {
				return doc.unknown(m, rootNames)
			}
		}
		if err != nil {
			return err
		}
	}
	var err error
	p.root, err = readProfile(doc, "", func(name string) bool { return !slices.Contains(profileNames, name) })
	return err
}

func (p *Policy) readModels(v value) error {
	if v.kind != object {
		return v.refuse("an object of profiles")
	}
	for _, m := range v.members {
		if m.name == "" {
			return v.doc.errorAt(m.line, "models has a profile without a name; the name of a model is accepted")
		}
		if m.value.kind != object {
			return m.value.refuse("a profile")
		}
		profile, err := readProfile(m.value, fmt.Sprintf("model %q: ", m.name), func(string) bool { return false })
		if err != nil {
			return err
		}
		if profile == nil {
			return m.value.errorf("%s has none of %s; all three are accepted", m.value.path, strings.Join(profileNames, ", "))
		}
		p.models[m.name] = profile
	}
	return nil
}

func (p *Policy) readSettings(v value) error {
	if v.kind != object {
		return v.refuse(wantObject)
	}
	for _, m := range v.members {
		if !slices.Contains(settingNames, m.name) {
			return v.unknown(m, settingNames)
		}
		if m.name == "router_approximate_cache_policy" {
			// For routers without events; a replay always has them.
			if _, err := m.value.word([]string{"ttl", "lru"}); err != nil {
				return err
			}
			continue
		}
		c := Default()
		f, _ := fieldNamed(m.name)
		if err := f.set(&c, m.value); err != nil {
			return err
		}
		p.settings = append(p.settings, m)
	}
	return nil
}

func (p *Policy) readSelection(v value) error {
	if v.kind != object {
		return v.refuse("an object of policies")
	}
	for _, m := range v.members {
		name, err := m.value.string()
		if err != nil {
			return err
		}
		if name != "default" && p.WorkerSelection == "" {
			p.WorkerSelection = name
		}
	}
	return nil
}

// readProfile reads the three fields of a profile; nil if there is none of
// them. skip says which other fields are not its business.
func readProfile(v value, of string, skip func(string) bool) (*config.RouterPolicy, error) {
	p := &config.RouterPolicy{}
	given := 0
	for _, m := range v.members {
		var err error
		switch m.name {
		case "default_policy_family":
			p.DefaultFamily, err = m.value.string()
		case "uncached_isl_buckets":
			p.Buckets, err = readBuckets(m.value)
		case "policy_classes":
			p.Classes, err = readClasses(m.value)
		default:
			if !skip(m.name) {
				err = v.unknown(m, profileNames)
			}
			given--
		}
		if err != nil {
			return nil, err
		}
		given++
	}
	switch {
	case given == 0:
		return nil, nil
	case given < len(profileNames):
		return nil, v.errorf("%sa profile has %d of %s; all three are accepted", of, given, strings.Join(profileNames, ", "))
	}
	if f := p.Check(); !f.OK() {
		return nil, v.errorf("%s%s", of, profileFault(p, f))
	}
	return p, nil
}

func readBuckets(v value) (buckets []config.PolicyBucket, err error) {
	if v.kind != list {
		return nil, v.refuse(wantList)
	}
	for _, e := range v.elems {
		if e.kind != object {
			return nil, e.refuse(wantObject)
		}
		b := config.PolicyBucket{}
		given := 0
		for _, m := range e.members {
			switch given++; m.name {
			case "min_tokens":
				b.MinTokens, err = m.value.whole(wantUint, math.MaxInt64)
			case "bucket":
				b.Name, err = m.value.string()
			default:
				err = e.unknown(m, bucketNames)
			}
			if err != nil {
				return nil, err
			}
		}
		if given < len(bucketNames) {
			return nil, e.errorf("%s needs min_tokens and bucket", e.path)
		}
		buckets = append(buckets, b)
	}
	return buckets, nil
}

func readClasses(v value) (classes []config.PolicyClass, err error) {
	if v.kind != list {
		return nil, v.refuse(wantList)
	}
	for _, e := range v.elems {
		if e.kind != object {
			return nil, e.refuse(wantObject)
		}
		c := config.PolicyClass{BusyTokens: config.NoLimit, BusyFraction: config.Unset,
			MaxRequests: config.NoLimit, MaxTokens: config.NoLimit, MaxCached: config.NoLimit}
		named, quantum := false, false
		for _, m := range e.members {
			named, quantum = named || m.name == "name", quantum || m.name == "quantum"
			if err := setClass(&c, e, m); err != nil {
				return nil, err
			}
		}
		switch {
		case !named:
			return nil, e.errorf("%s has no name; a class needs one", e.path)
		case !quantum:
			return nil, e.errorf("%s has no quantum; a class needs one, %s", e.path, wantPositive)
		}
		classes = append(classes, c)
	}
	return classes, nil
}

func setClass(c *config.PolicyClass, e value, m member) (err error) {
	v := m.value
	limit := func(to *int64) error {
		if *to = config.NoLimit; v.kind == null {
			return nil
		}
		n, err := v.whole(wantUint+wantOrNull, math.MaxInt64)
		*to = int64(n)
		return err
	}
	textOf := func(to *string) error {
		if *to = ""; v.kind == null {
			return nil
		}
		*to, err = v.string()
		return err
	}
	switch m.name {
	case "name":
		c.Name, err = v.string()
	case "policy_family":
		err = textOf(&c.Family)
	case "cache_bucket":
		err = textOf(&c.Bucket)
	case "queue_policy":
		var i int
		i, err = v.word(queueWords)
		c.Queue = config.QueuePolicy(i)
	case "quantum":
		var n uint64
		n, err = v.whole(wantPositive, math.MaxInt64)
		c.Quantum = int64(n)
	case "prefill_busy_threshold":
		err = limit(&c.BusyTokens)
	case "prefill_busy_threshold_frac":
		if v.kind != null {
			if c.BusyFraction, err = v.real(wantNumber + wantOrNull); err == nil && c.BusyFraction < 0 {
				err = v.refuse(wantNumber + wantOrNull)
			}
		}
	case "request_queue_limit_per_worker":
		err = limit(&c.MaxRequests)
	case "raw_isl_token_queue_limit_per_worker":
		err = limit(&c.MaxTokens)
	case "cached_token_queue_limit_per_worker":
		err = limit(&c.MaxCached)
	default:
		err = e.unknown(m, classNames)
	}
	return err
}

// profileFault words the rule that a profile breaks.
func profileFault(p *config.RouterPolicy, f config.PolicyFault) string {
	name := cliutil.Quote(f.Name)
	bucket := ""
	if f.Bucket < len(p.Buckets) {
		bucket = cliutil.Quote(p.Buckets[f.Bucket].Name)
	}
	class := fmt.Sprintf("policy_classes[%d] (%s)", f.Class, name)
	switch f.Code {
	case config.PolicyBadName:
		return "the name " + name + " is not made of letters, digits, '_', '.' and '-'"
	case config.PolicyNoBuckets:
		return "uncached_isl_buckets is empty; at least one is accepted"
	case config.PolicyFirstBucket:
		return fmt.Sprintf("the first of uncached_isl_buckets begins at min_tokens %d; 0 is accepted", p.Buckets[0].MinTokens)
	case config.PolicyBucketOrder:
		return fmt.Sprintf("bucket %s begins at min_tokens %d; more than the %d of the one before is accepted",
			name, p.Buckets[f.Bucket].MinTokens, p.Buckets[f.Bucket-1].MinTokens)
	case config.PolicyBucketTwice:
		return "two of uncached_isl_buckets are named " + name
	case config.PolicyNoClasses:
		return "policy_classes is empty; at least one is accepted"
	case config.PolicyClassTwice:
		return "two of policy_classes are named " + name
	case config.PolicyQuantum:
		return fmt.Sprintf("%s has quantum %d; %s is accepted", class, p.Classes[f.Class].Quantum, wantPositive)
	case config.PolicyQueue:
		return class + ` has queue_policy "lcfs"; "fcfs" or "wspt" is accepted`
	case config.PolicyHalfClass:
		return class + " has one of policy_family and cache_bucket; both or, for an explicit class, neither is accepted"
	case config.PolicyUnknownBucket:
		return fmt.Sprintf("policy_classes[%d] has cache_bucket %s, which uncached_isl_buckets lacks", f.Class, name)
	case config.PolicyPairTwice:
		return fmt.Sprintf("policy_classes[%d] is the second for family %s and its bucket; one is accepted", f.Class, name)
	case config.PolicyClassIsFamily:
		return class + " is an explicit class with the name of a family"
	case config.PolicyUnknownFamily:
		return "default_policy_family " + name + " has no classes"
	case config.PolicyPairMissing:
		return fmt.Sprintf("family %s has no class for bucket %s", name, bucket)
	}
	return class + " has a threshold or limit below 0" // setClass refuses it first
}
