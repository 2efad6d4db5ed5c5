package frame

import "github.com/dryserve/dryserve/core/config"

// seedsKey stands for the file and the name of a key of which only the seeds
// cross.
const seedsKey = "seeds"

// routerFields lists what a replay uses of the KV router's configuration.
func routerFields(r *config.Router) []Field {
	return below("routing.router.", []Field{
		{Name: "overlap_credit", Var: &r.OverlapCredit},
		{Name: "overlap_credit_decay", Var: &r.OverlapCreditDecay},
		{Name: "prefill_load_scale", Var: &r.PrefillLoadScale},
		{Name: "active_request_weight", Var: &r.ActiveRequestWeight},
		{Name: "host_hit_weight", Var: &r.HostHitWeight},
		{Name: "disk_hit_weight", Var: &r.DiskHitWeight},
		{Name: "temperature", Var: &r.Temperature},
		{Name: "track_active_blocks", Var: &r.TrackActiveBlocks},
		{Name: "assume_kv_reuse", Var: &r.AssumeKVReuse},
		{Name: "track_prefill_tokens", Var: &r.TrackPrefillTokens},
		{Name: "tracking_hash", Var: (*uint8)(&r.TrackingHash)},
		{Name: "load_model", Var: (*uint8)(&r.LoadModel)},
		{Name: "queue_threshold", Var: &r.QueueThreshold},
		{Name: "queue_policy", Var: (*uint8)(&r.QueuePolicy)},
	})
}

// policyColumns are the classes of a router as they cross: names as text with
// commas between them, numbers as columns.
type policyColumns struct {
	family, buckets                                       string
	tokens                                                []int64 // unsigned
	classes, families, places                             string
	queues                                                []int32
	quanta, busyTokens, maxRequests, maxTokens, maxCached []int64
	busyFractions                                         []float64
}

const (
	policyPrefix = "routing.router.policy."
	classesName  = "classes"
	bucketsName  = "buckets"
)

func (c *policyColumns) fields() []Field {
	return below(policyPrefix, []Field{
		{Name: "default_family", Var: &c.family},
		{Name: bucketsName, Var: &c.buckets}, {Name: "bucket_min_tokens", Var: &c.tokens},
		{Name: classesName, Var: &c.classes}, {Name: "class_families", Var: &c.families}, {Name: "class_buckets", Var: &c.places},
		{Name: "class_queues", Var: &c.queues}, {Name: "class_quanta", Var: &c.quanta},
		{Name: "class_busy_tokens", Var: &c.busyTokens}, {Name: "class_busy_fractions", Var: &c.busyFractions},
		{Name: "class_max_requests", Var: &c.maxRequests}, {Name: "class_max_tokens", Var: &c.maxTokens}, {Name: "class_max_cached", Var: &c.maxCached},
	})
}

// columnsOf are the columns of classes.
func columnsOf(p *config.RouterPolicy) *policyColumns {
	c := &policyColumns{family: p.DefaultFamily}
	for i, b := range p.Buckets {
		c.buckets = listed(c.buckets, b.Name, i)
		c.tokens = append(c.tokens, int64(b.MinTokens))
	}
	for i := range p.Classes {
		x := &p.Classes[i]
		c.classes, c.families, c.places = listed(c.classes, x.Name, i), listed(c.families, x.Family, i), listed(c.places, x.Bucket, i)
		c.queues = append(c.queues, int32(x.Queue))
		c.busyFractions = append(c.busyFractions, x.BusyFraction)
		for _, column := range c.limits(x) {
			*column.all = append(*column.all, *column.one)
		}
	}
	return c
}

// listed appends a name to a list of i names.
func listed(list, name string, i int) string {
	if i == 0 {
		return name
	}
	return list + "," + name
}

// limits are the whole numbers of a class and their columns.
func (c *policyColumns) limits(x *config.PolicyClass) [5]struct {
	all *[]int64
	one *int64
} {
	return [5]struct {
		all *[]int64
		one *int64
	}{{&c.quanta, &x.Quantum}, {&c.busyTokens, &x.BusyTokens}, {&c.maxRequests, &x.MaxRequests}, {&c.maxTokens, &x.MaxTokens}, {&c.maxCached, &x.MaxCached}}
}

// policy is what the columns say, nil if they say nothing. Columns that do not
// belong together are a fault.
func (c *policyColumns) policy() (*config.RouterPolicy, Fault) {
	if c.family == "" && c.buckets == "" && c.classes == "" {
		return nil, Fault{}
	}
	p := &config.RouterPolicy{DefaultFamily: c.family}
	names, classes := split(c.buckets, 0), split(c.classes, 0)
	n := len(classes)
	families, places := split(c.families, n), split(c.places, n)
	if len(names) != len(c.tokens) {
		return nil, Fault{Code: WrongType, Name: policyPrefix + bucketsName}
	}
	for i, name := range names {
		p.Buckets = append(p.Buckets, config.PolicyBucket{Name: name, MinTokens: uint64(c.tokens[i])})
	}
	fits := len(families) == n && len(places) == n && len(c.queues) == n && len(c.busyFractions) == n
	p.Classes = make([]config.PolicyClass, n)
	for i := range p.Classes {
		x := &p.Classes[i]
		for _, column := range c.limits(x) {
			if fits = fits && len(*column.all) == n; fits {
				*column.one = (*column.all)[i]
			}
		}
		if !fits || c.queues[i] < 0 || c.queues[i] > int32(config.QueueWSPT) {
			return nil, Fault{Code: WrongType, Name: policyPrefix + classesName}
		}
		x.Name, x.Family, x.Bucket, x.Queue, x.BusyFraction = classes[i], families[i], places[i], config.QueuePolicy(c.queues[i]), c.busyFractions[i]
	}
	return p, Fault{}
}

// split is the names of a list. An empty one has no names, or one that is empty
// where one is wanted.
func split(list string, want int) (names []string) {
	if list == "" && want != 1 {
		return nil
	}
	start := 0
	for i := range len(list) {
		if list[i] == ',' {
			names = append(names, list[start:i])
			start = i + 1
		}
	}
	return append(names, list[start:])
}
