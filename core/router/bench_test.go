package router

import (
	"testing"

	"github.com/dryserve/dryserve/core/config"
)

// BenchmarkRouter times the life of a request at 64 workers: placed, its blocks
// stored, its prompt done, freed; every fifth time a worker's cache is cleared.
func BenchmarkRouter(b *testing.B) {
	for name, c := range map[string]config.Router{"default": config.DefaultRouter(), "queued": threshold(0.5)} {
		b.Run(name, func(b *testing.B) {
			x := newTraffic(c, 64, 1, 0)
			x.below = false
			for b.Loop() {
				x.round(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/400, "ns/request")
			b.ReportMetric(0, "ns/op")
		})
	}
}
