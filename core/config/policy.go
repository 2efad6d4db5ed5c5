package config

// RouterPolicy is a profile of classes in which requests wait at a router. A
// request asks for a class by name; what is not the name of an explicit class is
// a family (an unknown name: the default one), and its class depends on how
// much of the prompt is not cached.
//
// Source: router notes §6.3.
type RouterPolicy struct {
	DefaultFamily string
	Buckets       []PolicyBucket
	Classes       []PolicyClass
}

// PolicyBucket begins at a number of tokens that are not cached and ends where
// the next one begins.
type PolicyBucket struct {
	MinTokens uint64
	Name      string
}

// PolicyClass is a class of requests. An explicit one has neither family nor
// bucket. NoLimit stands for a limit or threshold that is not set.
type PolicyClass struct {
	Name, Family, Bucket string
	Queue                QueuePolicy
	Quantum              int64   // tokens a turn brings, > 0
	BusyTokens           int64   // a rank with more prompt work than this is busy; NoLimit
	BusyFraction         float64 // the same as part of its token budget; Unset

	// What may wait, for each rank that serves; NoLimit.
	MaxRequests, MaxTokens, MaxCached int64
}

// NoLimit is a limit of a PolicyClass that is not set.
const NoLimit = -1

// Waits reports whether requests of the class ever wait.
func (c *PolicyClass) Waits() bool { return c.BusyTokens != NoLimit || c.BusyFraction >= 0 }

// OneClass is the profile of a router without classes: requests wait in one
// class, or never.
func OneClass(r Router) RouterPolicy {
	return RouterPolicy{Classes: []PolicyClass{{
		Name: "default", Queue: r.QueuePolicy, Quantum: 1, BusyTokens: NoLimit, BusyFraction: r.QueueThreshold,
		MaxRequests: NoLimit, MaxTokens: NoLimit, MaxCached: NoLimit,
	}}}
}

// PolicyCode says what is wrong with a profile.
type PolicyCode uint8

// PolicyValid is the zero PolicyCode.
const (
	PolicyValid         PolicyCode = iota
	PolicyBadName                  // not of letters, digits, '_', '.' and '-'
	PolicyNoBuckets                // there is none
	PolicyFirstBucket              // the first does not begin at 0
	PolicyBucketOrder              // one does not begin after the one before it
	PolicyBucketTwice              // two have one name
	PolicyNoClasses                // there is none
	PolicyClassTwice               // two have one name
	PolicyQuantum                  // below 1
	PolicyBusyFraction             // not a finite number from 0 on
	PolicyQueue                    // last come first is not for classes
	PolicyHalfClass                // a family without a bucket, or the other way round
	PolicyUnknownBucket            // a class names a bucket there is not
	PolicyPairTwice                // two classes for one family and bucket
	PolicyClassIsFamily            // an explicit class has the name of a family
	PolicyUnknownFamily            // the default family has no class
	PolicyPairMissing              // no class for a family and a bucket
	PolicyNegativeLimit            // a limit below 0 that is not NoLimit
)

// PolicyFault is the first rule that a profile breaks; the zero value means that
// it breaks none. Class and Bucket are indices, where they say something; Name
// is the text in question.
type PolicyFault struct {
	Code          PolicyCode
	Class, Bucket int
	Name          string
}

// OK reports whether nothing is wrong.
func (f PolicyFault) OK() bool { return f.Code == PolicyValid }

// Check returns the first fault: the default family's name, buckets, classes one
// by one, then what they are together.
func (p *RouterPolicy) Check() PolicyFault {
	if !isPolicyName(p.DefaultFamily) {
		return PolicyFault{Code: PolicyBadName, Name: p.DefaultFamily}
	}
	if f := p.checkBuckets(); !f.OK() {
		return f
	}
	if len(p.Classes) == 0 {
		return PolicyFault{Code: PolicyNoClasses}
	}
	for i := range p.Classes {
		if f := p.checkClass(i); !f.OK() {
			return f
		}
	}
	return p.checkFamilies()
}

func (p *RouterPolicy) checkBuckets() PolicyFault {
	if len(p.Buckets) == 0 {
		return PolicyFault{Code: PolicyNoBuckets}
	}
	for i, b := range p.Buckets {
		f := PolicyFault{Bucket: i, Name: b.Name}
		switch {
		case !isPolicyName(b.Name):
			f.Code = PolicyBadName
		case i == 0 && b.MinTokens != 0:
			f.Code = PolicyFirstBucket
		case i > 0 && b.MinTokens <= p.Buckets[i-1].MinTokens:
			f.Code = PolicyBucketOrder
		case p.bucket(b.Name) < i:
			f.Code = PolicyBucketTwice
		}
		if !f.OK() {
			return f
		}
	}
	return PolicyFault{}
}

// bucket is the index of the first bucket with a name, -1 if there is none.
func (p *RouterPolicy) bucket(name string) int {
	for i := range p.Buckets {
		if p.Buckets[i].Name == name {
			return i
		}
	}
	return -1
}

func (p *RouterPolicy) checkClass(i int) PolicyFault {
	c := &p.Classes[i]
	f := PolicyFault{Class: i, Name: c.Name}
	for k := range i {
		if p.Classes[k].Name == c.Name {
			f.Code = PolicyClassTwice
		}
	}
	switch {
	case !isPolicyName(c.Name):
		f.Code = PolicyBadName
	case f.Code != PolicyValid:
	case c.Quantum < 1:
		f.Code = PolicyQuantum
	case c.BusyFraction != Unset && (!finite(c.BusyFraction) || c.BusyFraction < 0):
		f.Code = PolicyBusyFraction
	case c.Queue == QueueLCFS || c.Queue > QueueWSPT:
		f.Code = PolicyQueue
	case min(c.BusyTokens, c.MaxRequests, c.MaxTokens, c.MaxCached) < NoLimit:
		f.Code = PolicyNegativeLimit
	case (c.Family == "") != (c.Bucket == ""):
		f.Code = PolicyHalfClass
	case c.Family == "":
	case !isPolicyName(c.Family):
		f.Code, f.Name = PolicyBadName, c.Family
	case p.bucket(c.Bucket) < 0:
		f.Code, f.Name = PolicyUnknownBucket, c.Bucket
	default:
		for k := range i {
			if p.Classes[k].Family == c.Family && p.Classes[k].Bucket == c.Bucket {
				f.Code, f.Name = PolicyPairTwice, c.Family
			}
		}
	}
	return f
}

// checkFamilies: every family has a class for every bucket, and no explicit
// class its name.
func (p *RouterPolicy) checkFamilies() PolicyFault {
	for i, c := range p.Classes {
		if c.Family == "" && p.hasFamily(c.Name) {
			return PolicyFault{Code: PolicyClassIsFamily, Class: i, Name: c.Name}
		}
	}
	if !p.hasFamily(p.DefaultFamily) {
		return PolicyFault{Code: PolicyUnknownFamily, Name: p.DefaultFamily}
	}
	for i, c := range p.Classes {
		if c.Family == "" {
			continue
		}
		for b := range p.Buckets {
			if p.class(c.Family, p.Buckets[b].Name) < 0 {
				return PolicyFault{PolicyPairMissing, i, b, c.Family}
			}
		}
	}
	return PolicyFault{}
}

func (p *RouterPolicy) hasFamily(name string) bool {
	for i := range p.Classes {
		if p.Classes[i].Family == name && name != "" {
			return true
		}
	}
	return false
}

// class is the index of the class of a family and bucket, -1 if there is none.
func (p *RouterPolicy) class(family, bucket string) int {
	for i := range p.Classes {
		if p.Classes[i].Family == family && p.Classes[i].Bucket == bucket {
			return i
		}
	}
	return -1
}

func isPolicyName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.' || c == '-') {
			return false
		}
	}
	return name != ""
}

// ClassRequest is what the name of a class in a request comes down to: an
// explicit class, or a family. For a router without classes the zero value will
// do.
type ClassRequest struct {
	Direct bool
	Index  int32 // of the class, or of the family's first class
}

// Resolve finds what a request that asks for a class by name means; "" asks for
// nothing. The profile has passed Check or is OneClass.
func (p *RouterPolicy) Resolve(name string) ClassRequest {
	if len(p.Buckets) == 0 {
		return ClassRequest{Direct: true}
	}
	for i := range p.Classes {
		if c := &p.Classes[i]; c.Family == "" && c.Name == name {
			return ClassRequest{Direct: true, Index: int32(i)}
		}
	}
	if !p.hasFamily(name) {
		name = p.DefaultFamily
	}
	return ClassRequest{Index: int32(p.class(name, p.Buckets[0].Name))}
}

// Class is the class of a request of whose prompt so many tokens are not cached.
func (p *RouterPolicy) Class(r ClassRequest, uncached uint64) int {
	if r.Direct || len(p.Buckets) == 0 {
		return int(r.Index)
	}
	b := len(p.Buckets) - 1
	for p.Buckets[b].MinTokens > uncached {
		b--
	}
	return p.class(p.Classes[r.Index].Family, p.Buckets[b].Name)
}
