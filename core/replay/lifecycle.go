package replay

import (
	"strconv"

	"github.com/dryserve/dryserve/core/blake3"
	"github.com/dryserve/dryserve/core/jsontext"
	"github.com/dryserve/dryserve/core/workload"
)

// lifecycle hashes what happens to the requests of a graph, event by event as
// JSON lines (replay notes §3.4), as the reference's name for a run.
type lifecycle struct {
	graph *workload.Graph
	hash  blake3.Hasher
	count int64
	line  []byte
}

func (l *lifecycle) begin(g *workload.Graph) {
	l.graph, l.line = g, make([]byte, 0, 1024)
	l.hash.Write([]byte("aisimulate-agentic-lifecycle-v1\x00"))
}

// node notes an event of a request; status may be empty.
func (l *lifecycle) node(atMs float64, play, node int32, event, status string) {
	l.open(atMs, play)
	l.line = jsontext.AppendString(append(l.line, `,"request_id":`...), l.graph.Request(node))
	l.close(event, status)
}

// play notes an event of a play.
func (l *lifecycle) play(atMs float64, play int32, event string) {
	l.open(atMs, play)
	l.close(event, "")
}

func (l *lifecycle) open(atMs float64, play int32) {
	b := append(l.line[:0], `{"schema":"aisimulate.agentic.lifecycle.v1","ordinal":`...)
	b = strconv.AppendInt(b, l.count, 10)
	b = jsontext.AppendFloat(append(b, `,"at_ms":`...), atMs)
	l.line = jsontext.AppendString(append(b, `,"play_id":`...), l.graph.PlayID(play))
}

func (l *lifecycle) close(event, status string) {
	b := append(append(append(l.line, `,"event":"`...), event...), '"')
	if status != "" {
		b = append(append(append(b, `,"status":"`...), status...), '"')
	}
	l.line = append(b, "}\n"...)
	l.hash.Write(l.line)
	l.count++
}
