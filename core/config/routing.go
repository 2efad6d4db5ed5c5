package config

// RouterMode says how arriving requests are spread over workers.
type RouterMode uint8

// In turn; by what caches hold and ranks are busy with (core/router); by lot;
// the less busy of two that are drawn; the least busy; as the workload says.
const (
	RoundRobin RouterMode = iota
	KVRouter
	Random
	PowerOfTwo
	LeastLoaded
	Direct
)

// CanonicalSeed seeds lots where nothing else is said; it is the seed of the
// reference's canonical mode (router notes §4.4).
const CanonicalSeed = 0xd1a05eed

// Routing describes how requests are spread over the workers of a run.
type Routing struct {
	Mode RouterMode
	Seed uint64 // of lots

	// The rest is used with KVRouter only.
	Router     *Router // checked, like its Policy; copies share it, nobody changes it
	EventLagMs float64 // how late the router believes what caches say
	Tracking   Seeds   // with KeyedXXH3
	AskLoad    bool    // with PredictedLoad: predictions are asked for outside, whatever the engines' timing
	// LoadGrid, with PredictedLoad: predictions are read here, whatever the
	// engines' timing. nil: from the engines' own grid or provider, or AskLoad's.
	LoadGrid *GridTable
}

// Seeds are those of the hashes that name blocks.
type Seeds struct{ Block, Chain uint64 }

// check: the router's own fields are Router.Check's business.
func (r Routing) check() Fault {
	switch {
	case r.Mode > Direct, r.Mode == KVRouter && r.Router == nil:
		return Fault{UnknownValue, FieldRouterMode}
	case !finite(r.EventLagMs):
		return Fault{NotFinite, FieldKVEventLag}
	case r.EventLagMs < 0:
		return Fault{NegativeFloat, FieldKVEventLag}
	case r.LoadGrid != nil:
		return r.LoadGrid.Check().Fault
	}
	return Fault{}
}
