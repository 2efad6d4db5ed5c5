package books_test

import (
	"math"
	"sync"
	"testing"

	"github.com/dryserve/dryserve/host/native/live/books"
)

// A few requests by hand.
func TestSummary(t *testing.T) {
	var b books.Books
	if s := b.Summary(1, 1); s.NumRequests != 0 || s.DurationMs != 0 || s.ITL.Max != 0 {
		t.Errorf("empty: %+v", s)
	}
	first := b.Arrive(100, 1000)
	second := b.Arrive(50, 1100)
	b.Arrive(1, 1200).End(books.Rejected, 0, 1201)
	gone := b.Arrive(1, 1300)
	gone.Token(1310)
	b.Arrive(1, 1400) // under way
	for _, at := range []float64{1020, 1030, 1060} {
		first.Token(at)
	}
	first.End(books.Completed, 40, 1060)
	first.End(books.Cancelled, 0, 1070) // it has ended
	gone.End(books.Cancelled, 0, 1350)
	second.Token(1140)
	second.End(books.Completed, 0, 2000)
	b.Arrive(7, 1500).End(books.Failed, 0, 1501)

	s := b.Summary(2, 4)
	if s.NumRequests != 6 || s.CompletedRequests != 2 || s.RejectedRequests != 1 || s.CancelledRequests != 1 || s.FailedRequests != 1 || s.UnfinishedRequests != 1 {
		t.Errorf("counts: %+v", s)
	}
	if s.TotalInputTokens != 150 || s.TotalOutputTokens != 4 || s.DurationMs != 1000 || s.RequestThroughputRPS != 2 || s.OutputThroughputTokS != 4 || s.CommittedPrefillTokens != 110 {
		t.Errorf("tokens: %+v", s)
	}
	if s.NumTTFT != 2 || s.TTFT.Min != 20 || s.TTFT.Max != 40 || s.NumTPOT != 1 || s.TPOT.Mean != 20 || s.TTST.Mean != 10 || s.E2E.Max != 60 || s.ITL.Mean != 20 || s.ITL.Max != 30 {
		t.Errorf("latencies: %+v", s)
	}
	if s.DecodeWorkerSeconds != 2 || s.GPUHours != 8./3600 || math.Abs(s.PrefixReusedRatio-40./150) > 1e-15 {
		t.Errorf("%v worker seconds, %v GPU hours, %v reused", s.DecodeWorkerSeconds, s.GPUHours, s.PrefixReusedRatio)
	}
	if again := b.Summary(2, 4); again.TTFT != s.TTFT {
		t.Error("a summary changes the books")
	}
}

// Many at once lose nothing.
func TestConcurrently(t *testing.T) {
	var b books.Books
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				r := b.Arrive(2, 1)
				r.Token(2)
				r.Token(4)
				r.End(books.Completed, 1, 4)
			}
		})
	}
	all.Wait()
	if s := b.Summary(1, 1); s.CompletedRequests != 800 || s.TotalOutputTokens != 1600 || s.ITL.Mean != 2 || s.ITL.Std != 0 {
		t.Errorf("%+v", s)
	}
}
