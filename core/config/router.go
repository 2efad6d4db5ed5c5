package config

// QueuePolicy orders requests that wait at a router.
type QueuePolicy uint8

// First come first, last come first, or the weighted shortest first.
const (
	QueueFCFS QueuePolicy = iota
	QueueLCFS
	QueueWSPT
)

// TrackingHash says how a router names the blocks of live prompts.
type TrackingHash uint8

// PublicXXH3 is the hash everybody uses, KeyedXXH3 one that depends on a secret.
const (
	PublicXXH3 TrackingHash = iota
	KeyedXXH3
)

// PrefillLoadModel says whether a router predicts how long prompts take.
type PrefillLoadModel uint8

// NoLoadModel predicts nothing, PredictedLoad asks a model of the hardware.
const (
	NoLoadModel PrefillLoadModel = iota
	PredictedLoad
)

// SharedCache is a cache that all workers share.
type SharedCache uint8

// There is none, or it is SGLang's HiCache.
const (
	NoSharedCache SharedCache = iota
	HiCache
)

// BypassPolicy says when a live router spares a prompt the prefill pool.
type BypassPolicy uint8

// By what is not cached of the prompt, by the load of the prefill worker, or by
// either.
const (
	BypassByISL BypassPolicy = iota
	BypassByLoad
	BypassByEither
)

// Router is the configuration of a KV router: every field of the reference's
// --router-config. An offline replay uses the fields down to Policy; the others
// are for a live router and must only be right.
//
// Source: router notes §7.
type Router struct {
	OverlapCredit       float64 // blocks of cost that a device hit saves
	OverlapCreditDecay  float64 // how fast that falls with the load; 0: not
	PrefillLoadScale    float64 // weight of prompt work against decode blocks
	ActiveRequestWeight float64 // blocks of cost of each live request
	HostHitWeight       float64 // of a block in host memory, 0 to 1
	DiskHitWeight       float64 // of a block further down, 0 to 1
	Temperature         float64 // 0: the cheapest worker
	TrackActiveBlocks   bool    // know the blocks of live prompts
	AssumeKVReuse       bool    // live prompts share blocks
	TrackPrefillTokens  bool    // know the prompt work that is left
	TrackingHash        TrackingHash
	TrackingKeyFile     string // with KeyedXXH3
	TrackingKeyID       string // with KeyedXXH3
	LoadModel           PrefillLoadModel
	QueueThreshold      float64 // part of a pass's token budget; negative: requests never wait
	QueuePolicy         QueuePolicy
	Policy              *RouterPolicy // classes; nil: one class

	TrackOutputBlocks     bool
	UseKVEvents           bool
	ReplicaSync           bool
	TTLSecs               float64
	EventThreads          int
	SkipInitialWorkerWait bool
	UseRemoteIndexer      bool
	ServeIndexer          bool
	SessionPrefixIndex    bool
	SharedCacheMultiplier float64 // 0 to 1; negative: not set
	SharedCache           SharedCache
	PredictedTTLSecs      float64 // negative: not set
	Bypass                Bypass
}

// Bypass lets a live router spare prompts the prefill pool.
type Bypass struct {
	Enabled        bool
	Policy         BypassPolicy
	ISLThreshold   int     // tokens that are not cached
	RatioThreshold float64 // of the prompt, 0 to 1
	PrefillBusy    float64 // negative: not set
	DecodeBusy     float64 // negative: not set
}

// Unset stands for a float given as null where only others from 0 on mean
// something.
const Unset = -1.0

// DefaultRouter is a router as the reference configures it when nothing is
// said.
func DefaultRouter() Router {
	return Router{
		OverlapCredit: 1, PrefillLoadScale: 1, HostHitWeight: 0.75, DiskHitWeight: 0.25,
		TrackActiveBlocks: true, AssumeKVReuse: true, TrackPrefillTokens: true,
		QueueThreshold: Unset,
		UseKVEvents:    true, TTLSecs: 120, EventThreads: 4,
		SharedCacheMultiplier: Unset, PredictedTTLSecs: Unset,
		Bypass: Bypass{ISLThreshold: 2048, RatioThreshold: 0.7, PrefillBusy: Unset, DecodeBusy: Unset},
	}
}

// ForPrefill is the router of a prefill pool whose fleet is configured like r:
// it does not know decode blocks (router notes §7).
func (r Router) ForPrefill() Router {
	r.TrackActiveBlocks = false
	return r
}

// ForDecode is the router of a decode pool whose fleet is configured like r: it
// sees no caches and no prompt work (router notes §7).
func (r Router) ForDecode() Router {
	r.OverlapCredit = 0
	r.AssumeKVReuse = false
	r.TrackPrefillTokens = false
	r.LoadModel = NoLoadModel
	return r
}

// RouterField names a field of Router.
type RouterField uint8

// The fields of Router that can be at fault, in the order they are checked.
const (
	NoRouterField RouterField = iota
	FieldOverlapCredit
	FieldOverlapCreditDecay
	FieldPrefillLoadScale
	FieldActiveRequestWeight
	FieldHostHitWeight
	FieldDiskHitWeight
	FieldRouterTemperature
	FieldRouterTTL
	FieldQueueThreshold
	FieldEventThreads
	FieldSharedCacheMultiplier
	FieldPredictedTTL
	FieldBypassRatio
	FieldBypassISL
	FieldBypassPrefillBusy
	FieldBypassDecodeBusy
	FieldRouterEnums
	FieldTrackOutputBlocks
	FieldLoadModel
	FieldTrackingKeyFile
	FieldTrackingKeyID
	FieldServeIndexer
	FieldSessionPrefixIndex
	FieldBypassPolicy
)

// RouterFault is the first rule that a router's configuration breaks; the zero
// value means that it breaks none. With says which other field forbids the
// value, if one does.
type RouterFault struct {
	Code  RouterCode
	Field RouterField
}

// RouterCode says what is wrong with a field.
type RouterCode uint8

// RouterValid is the zero RouterCode.
const (
	RouterValid        RouterCode = iota
	RouterNegative                // not a finite number from 0 on
	RouterNotUnit                 // not a number from 0 to 1
	RouterNoThreads               // below 1
	RouterUnknown                 // not one of the enumerators
	NeedsActiveBlocks             // output blocks are tracked with the prompts' blocks only
	NeedsPrefillTokens            // there is no prompt work to predict
	NeedsTrackingKey              // a keyed hash has a key file and an id
	NeedsKeyedHash                // key file and id belong to a keyed hash
	RemoteAndServed               // an index is asked for elsewhere or served, not both
	NeedsKVEvents                 // there is no index of events
	NotWithRemote                 // sessions are not indexed elsewhere
	NeedsBusyThreshold            // nothing says when a prefill worker is busy
)

// OK reports whether nothing is wrong.
func (f RouterFault) OK() bool { return f.Code == RouterValid }

// Check returns the first fault: numbers, then enumerators, then what fields
// ask of one another. The classes are checked by RouterPolicy.Check.
//
// Source: router notes §7.
func (r Router) Check() RouterFault {
	for _, x := range []struct {
		field RouterField
		value float64
		unit  bool // at most 1
		unset bool // may be negative
	}{
		{FieldOverlapCredit, r.OverlapCredit, false, false},
		{FieldOverlapCreditDecay, r.OverlapCreditDecay, false, false},
		{FieldPrefillLoadScale, r.PrefillLoadScale, false, false},
		{FieldActiveRequestWeight, r.ActiveRequestWeight, false, false},
		{FieldHostHitWeight, r.HostHitWeight, true, false},
		{FieldDiskHitWeight, r.DiskHitWeight, true, false},
		{FieldRouterTemperature, r.Temperature, false, false},
		{FieldRouterTTL, r.TTLSecs, false, false},
		{FieldQueueThreshold, r.QueueThreshold, false, true},
		{FieldSharedCacheMultiplier, r.SharedCacheMultiplier, true, true},
		{FieldPredictedTTL, r.PredictedTTLSecs, false, true},
		{FieldBypassRatio, r.Bypass.RatioThreshold, true, false},
		{FieldBypassPrefillBusy, r.Bypass.PrefillBusy, false, true},
		{FieldBypassDecodeBusy, r.Bypass.DecodeBusy, false, true},
	} {
		switch {
		case x.unset && x.value == Unset:
		case x.unit && !(x.value >= 0 && x.value <= 1):
			return RouterFault{RouterNotUnit, x.field}
		case !finite(x.value) || x.value < 0:
			return RouterFault{RouterNegative, x.field}
		}
	}
	switch {
	case r.EventThreads < 1:
		return RouterFault{RouterNoThreads, FieldEventThreads}
	case r.Bypass.ISLThreshold < 0:
		return RouterFault{RouterNegative, FieldBypassISL}
	case r.QueuePolicy > QueueWSPT || r.TrackingHash > KeyedXXH3 || r.LoadModel > PredictedLoad || r.SharedCache > HiCache || r.Bypass.Policy > BypassByEither:
		return RouterFault{RouterUnknown, FieldRouterEnums}
	}
	return r.checkRules()
}

// checkRules checks what fields ask of one another.
func (r Router) checkRules() RouterFault {
	keyed := r.TrackingHash == KeyedXXH3
	switch {
	case r.TrackOutputBlocks && !r.TrackActiveBlocks:
		return RouterFault{NeedsActiveBlocks, FieldTrackOutputBlocks}
	case r.LoadModel != NoLoadModel && !r.TrackPrefillTokens:
		return RouterFault{NeedsPrefillTokens, FieldLoadModel}
	case keyed && r.TrackingKeyFile == "":
		return RouterFault{NeedsTrackingKey, FieldTrackingKeyFile}
	case keyed && r.TrackingKeyID == "":
		return RouterFault{NeedsTrackingKey, FieldTrackingKeyID}
	case !keyed && r.TrackingKeyFile != "":
		return RouterFault{NeedsKeyedHash, FieldTrackingKeyFile}
	case !keyed && r.TrackingKeyID != "":
		return RouterFault{NeedsKeyedHash, FieldTrackingKeyID}
	case r.UseRemoteIndexer && r.ServeIndexer:
		return RouterFault{RemoteAndServed, FieldServeIndexer}
	case r.PredictedTTLSecs != Unset && !r.UseKVEvents:
		return RouterFault{NeedsKVEvents, FieldPredictedTTL}
	case r.SessionPrefixIndex && !r.UseKVEvents:
		return RouterFault{NeedsKVEvents, FieldSessionPrefixIndex}
	case r.SessionPrefixIndex && r.UseRemoteIndexer:
		return RouterFault{NotWithRemote, FieldSessionPrefixIndex}
	case r.Bypass.Enabled && r.Bypass.Policy != BypassByISL && r.Bypass.PrefillBusy == Unset && r.QueueThreshold == Unset:
		return RouterFault{NeedsBusyThreshold, FieldBypassPolicy}
	}
	return RouterFault{}
}
