package offload

// bytesPerMs turns decimal GB/s into bytes per millisecond.
const bytesPerMs = 1e6

// Lane is one direction of the link between a GPU and its host memory. Copies
// follow each other.
type Lane struct {
	gbs       float64 // decimal GB/s; 0: no time
	latencyMs float64 // before the first byte of a copy that may start
	tailMs    float64 // when the last copy ends
}

// NewLane returns an idle lane.
func NewLane(gbs, latencyMs float64) Lane { return Lane{gbs: gbs, latencyMs: latencyMs} }

// Copy queues a copy of so many bytes, which may not start before fromMs, and
// returns when it ends.
func (l *Lane) Copy(bytes int, fromMs float64) (endMs float64) {
	l.tailMs = max(l.tailMs, fromMs+l.latencyMs)
	if l.gbs > 0 {
		l.tailMs += float64(bytes) / float64(l.gbs*bytesPerMs)
	}
	return l.tailMs
}
