package report

import (
	"slices"
	"strings"

	"github.com/dryserve/dryserve/core/offload"
)

// diskText spells the counts of disks as the value of g3_offload, one level
// deep in the report. Copies are never cancelled: they end even if nobody waits
// for them any more. bypassed_restores is there if there were any, as in the
// reference's report.
func diskText(d *offload.DiskStats) string {
	var e entries
	e.whole("lookup_probes", d.Probes)
	e.whole("lookup_hits", d.Hits)
	e.whole("lookup_pending", d.Pending)
	e = append(e, entry{"read", trafficText(d.Read)}, entry{"write", trafficText(d.Write)})
	e.whole("evictions", d.Evictions)
	e.whole("cross_worker_read_blocks", d.ReadOfOthers)
	e.whole("resident_blocks", d.ResidentBlocks)
	e.whole("pending_blocks", d.PendingBlocks)
	if d.Bypassed > 0 {
		e.whole("bypassed_restores", d.Bypassed)
	}
	return e.object("    ")
}

func trafficText(t offload.Traffic) string {
	var e entries
	e.whole("submitted_jobs", t.Submitted)
	e.whole("completed_jobs", t.Completed)
	e.whole("cancelled_jobs", 0)
	e.whole("completed_bytes", t.CompletedBytes)
	e.real("transfer_ms", t.TransferMs)
	return e.object("      ")
}

// object spells the entries as an object within others, sorted, each after
// indent.
func (e entries) object(indent string) string {
	slices.SortFunc(e, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	text := "{"
	for i, kv := range e {
		if i > 0 {
			text += ","
		}
		text += "\n" + indent + `"` + kv.key + `": ` + kv.value
	}
	return text + "\n" + indent[2:] + "}"
}
