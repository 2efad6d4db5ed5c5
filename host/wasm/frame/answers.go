package frame

import (
	"github.com/dryserve/dryserve/core/offload"
	"github.com/dryserve/dryserve/core/replay"
	"github.com/dryserve/dryserve/core/stats"
)

// SummaryFields lists the numbers of a summary under the names that they have
// in reports. A distribution is a column of nine numbers. What s does not have
// is left out.
func SummaryFields(s *replay.Summary) []Field {
	fields := []Field{
		{Name: "committed_prefill_tokens", Var: &s.CommittedPrefillTokens},
		{Name: "num_requests", Var: &s.NumRequests},
		{Name: "completed_requests", Var: &s.CompletedRequests},
		{Name: "rejected_requests", Var: &s.RejectedRequests},
		{Name: "failed_requests", Var: &s.FailedRequests},
		{Name: "cancelled_requests", Var: &s.CancelledRequests},
		{Name: "unfinished_requests", Var: &s.UnfinishedRequests},
		{Name: "total_input_tokens", Var: &s.TotalInputTokens},
		{Name: "total_output_tokens", Var: &s.TotalOutputTokens},
		{Name: "duration_ms", Var: &s.DurationMs},
		{Name: "request_throughput_rps", Var: &s.RequestThroughputRPS},
		{Name: "input_throughput_tok_s", Var: &s.InputThroughputTokS},
		{Name: "output_throughput_tok_s", Var: &s.OutputThroughputTokS},
		{Name: "total_throughput_tok_s", Var: &s.TotalThroughputTokS},
		{Name: "prefill_worker_seconds", Var: &s.PrefillWorkerSeconds},
		{Name: "decode_worker_seconds", Var: &s.DecodeWorkerSeconds},
		{Name: "prefill_gpus_per_worker", Var: &s.PrefillGPUsPerWorker},
		{Name: "decode_gpus_per_worker", Var: &s.DecodeGPUsPerWorker},
		{Name: "gpu_hours", Var: &s.GPUHours},
		{Name: "prefix_cache_reused_ratio", Var: &s.PrefixReusedRatio},
		{Name: "first_admission_prefix_cache_reused_ratio", Var: &s.FirstAdmissionReused},
		{Name: "has_sla", Var: &s.HasSLA},
		{Name: "goodput_completed_requests", Var: &s.GoodputCompleted},
		{Name: "goodput_request_throughput_rps", Var: &s.GoodputRequestRPS},
		{Name: "goodput_output_throughput_tok_s", Var: &s.GoodputOutputTokS},
		{Name: "num_ttft_samples", Var: &s.NumTTFT},
		{Name: "num_tpot_samples", Var: &s.NumTPOT},
		{Name: "num_e2e_latency_samples", Var: &s.NumE2E},
		{Name: "ttft_ms", Var: &s.TTFT},
		{Name: "ttst_ms", Var: &s.TTST},
		{Name: "tpot_ms", Var: &s.TPOT},
		{Name: "itl_ms", Var: &s.ITL},
		{Name: "e2e_latency_ms", Var: &s.E2E},
		{Name: "output_token_throughput_per_user", Var: &s.PerUser},
	}
	if h := s.SharedHost; h != nil {
		fields = append(fields, Field{Name: SharedHostKey, Var: &h.CapacityBlocks},
			Field{Name: "shared_host.resident_blocks", Var: &h.ResidentBlocks}, Field{Name: "shared_host.used_blocks", Var: &h.UsedBlocks})
	}
	fields = append(fields, diskFields(s.Disk)...)
	if a := s.Agents; a != nil {
		fields = append(fields, Field{Name: AgentsKey, Var: &a.Plays}, Field{Name: "agents.completed", Var: &a.Completed},
			Field{Name: "agents.latency_ms", Var: &a.Latency}, Field{Name: "agents.events", Var: &a.Events}, Field{Name: "agents.digest", Var: &a.Digest})
	}
	return fields
}

// AgentsKey is there if the summary is that of a graph.
const AgentsKey = "agents.plays"

func diskFields(d *offload.DiskStats) []Field {
	if d == nil {
		return nil
	}
	fields := []Field{
		{Name: DiskKey, Var: &d.Probes}, {Name: "disk.lookup_hits", Var: &d.Hits}, {Name: "disk.lookup_pending", Var: &d.Pending},
		{Name: "disk.evictions", Var: &d.Evictions}, {Name: "disk.cross_worker_read_blocks", Var: &d.ReadOfOthers},
		{Name: "disk.bypassed_restores", Var: &d.Bypassed}, {Name: "disk.resident_blocks", Var: &d.ResidentBlocks},
		{Name: "disk.pending_blocks", Var: &d.PendingBlocks},
	}
	for _, t := range []struct {
		name string
		of   *offload.Traffic
	}{{"read", &d.Read}, {"write", &d.Write}} {
		fields = append(fields, Field{Name: "disk." + t.name + ".submitted_jobs", Var: &t.of.Submitted},
			Field{Name: "disk." + t.name + ".completed_jobs", Var: &t.of.Completed},
			Field{Name: "disk." + t.name + ".completed_bytes", Var: &t.of.CompletedBytes},
			Field{Name: "disk." + t.name + ".transfer_ms", Var: &t.of.TransferMs})
	}
	return fields
}

// DiskKey is there if the summary has the counts of disks.
const DiskKey = "disk.lookup_probes"

// SharedHostKey is there if the summary has a shared pool of host memory.
const SharedHostKey = "shared_host.capacity_blocks"

// distFields is the order of the numbers in the column of a distribution.
func distFields(d *stats.Dist) [9]*float64 {
	return [9]*float64{&d.Mean, &d.Min, &d.Max, &d.Median, &d.P75, &d.P90, &d.P95, &d.P99, &d.Std}
}

// DistColumn is the column of a distribution.
func DistColumn(d *stats.Dist) []float64 {
	column := make([]float64, 0, 9)
	for _, x := range distFields(d) {
		column = append(column, *x)
	}
	return column
}

// SetDist reads the column of a distribution; false: it is none.
func SetDist(d *stats.Dist, column []float64) bool {
	if len(column) != 9 {
		return false
	}
	for i, x := range distFields(d) {
		*x = column[i]
	}
	return true
}

// RowColumns are records as columns, one value per record, in the order of
// their ends. The last two columns have a value per admission, record after
// record.
type RowColumns struct {
	Turn, InputLength, RequestedOutput, OutputLength, ReusedTokens, FirstHostTokens []int32
	Worker, Status, AdmissionCount                                                  []int32

	ArrivalMs, FirstAdmitMs, TerminalMs, FirstTokenMs, SecondTokenMs, LastTokenMs []float64

	AdmissionReused []int32
	AdmissionAtMs   []float64
}

// Fields lists the columns.
func (c *RowColumns) Fields() []Field {
	return []Field{
		{Name: "turn", Var: &c.Turn},
		{Name: "arrival_ms", Var: &c.ArrivalMs},
		{Name: "first_admit_ms", Var: &c.FirstAdmitMs},
		{Name: "terminal_ms", Var: &c.TerminalMs},
		{Name: "first_token_ms", Var: &c.FirstTokenMs},
		{Name: "second_token_ms", Var: &c.SecondTokenMs},
		{Name: "last_token_ms", Var: &c.LastTokenMs},
		{Name: "input_length", Var: &c.InputLength},
		{Name: "requested_output", Var: &c.RequestedOutput},
		{Name: "output_length", Var: &c.OutputLength},
		{Name: "reused_tokens", Var: &c.ReusedTokens},
		{Name: "first_host_tokens", Var: &c.FirstHostTokens},
		{Name: "worker", Var: &c.Worker},
		{Name: "status", Var: &c.Status},
		{Name: "admission_count", Var: &c.AdmissionCount},
		{Name: "admission_at_ms", Var: &c.AdmissionAtMs},
		{Name: "admission_reused", Var: &c.AdmissionReused},
	}
}

// Add appends a record and its admissions.
func (c *RowColumns) Add(r *replay.Record, admissions []replay.Admission) {
	push(&c.Turn, r.Turn)
	note(&c.ArrivalMs, r.ArrivalMs)
	note(&c.FirstAdmitMs, r.FirstAdmitMs)
	note(&c.TerminalMs, r.TerminalMs)
	note(&c.FirstTokenMs, r.FirstTokenMs)
	note(&c.SecondTokenMs, r.SecondTokenMs)
	note(&c.LastTokenMs, r.LastTokenMs)
	push(&c.InputLength, r.InputLength)
	push(&c.RequestedOutput, r.RequestedOutput)
	push(&c.OutputLength, r.OutputLength)
	push(&c.ReusedTokens, r.ReusedTokens)
	push(&c.FirstHostTokens, r.FirstHostTokens)
	push(&c.Worker, r.Worker)
	push(&c.Status, int32(r.Status))
	push(&c.AdmissionCount, r.AdmissionCount)
	for _, a := range admissions {
		note(&c.AdmissionAtMs, a.AtMs)
		push(&c.AdmissionReused, a.Reused)
	}
}

// Rows appends the columns' records and admissions; false: the columns do not
// belong together.
func (c *RowColumns) Rows(records []replay.Record, admissions []replay.Admission) ([]replay.Record, []replay.Admission, bool) {
	fields := c.Fields()
	n, ok := even(fields[:len(fields)-2])
	if !ok {
		return records, admissions, false
	}
	at := int32(0)
	for i := range n {
		count := c.AdmissionCount[i]
		if count < 0 || int(count) > len(c.AdmissionAtMs)-int(at) || c.Status[i] < 0 || c.Status[i] > int32(replay.Failed) {
			return records, admissions, false
		}
		records = append(records, replay.Record{
			Turn: c.Turn[i], ArrivalMs: c.ArrivalMs[i], FirstAdmitMs: c.FirstAdmitMs[i], TerminalMs: c.TerminalMs[i],
			FirstTokenMs: c.FirstTokenMs[i], SecondTokenMs: c.SecondTokenMs[i], LastTokenMs: c.LastTokenMs[i],
			InputLength: c.InputLength[i], RequestedOutput: c.RequestedOutput[i], OutputLength: c.OutputLength[i],
			ReusedTokens: c.ReusedTokens[i], FirstHostTokens: c.FirstHostTokens[i], Worker: c.Worker[i], Status: replay.TerminalStatus(c.Status[i]),
			AdmissionStart: int32(len(admissions)) + at, AdmissionCount: count,
		})
		at += count
	}
	if int(at) != len(c.AdmissionAtMs) || int(at) != len(c.AdmissionReused) {
		return records, admissions, false
	}
	for i := range c.AdmissionAtMs {
		admissions = append(admissions, replay.Admission{AtMs: c.AdmissionAtMs[i], Reused: c.AdmissionReused[i]})
	}
	return records, admissions, true
}
