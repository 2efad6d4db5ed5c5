package agentic

import (
	"strconv"

	"github.com/dryserve/dryserve/core/blake3"
	"github.com/dryserve/dryserve/core/jsontext"
	"github.com/dryserve/dryserve/core/workload"
)

// digest is the reference's name for a graph: the BLAKE3 hash of its nodes as
// compact JSON.
func (b *Builder) digest(g *workload.Graph) [blake3.Size]byte {
	var h blake3.Hasher
	text := strconv.AppendInt([]byte(`{"block_size":`), b.blockSize, 10)
	text = append(text, `,"nodes":[`...)
	for i := range b.rows {
		if i > 0 {
			text = append(text, ',')
		}
		text = b.appendNode(text, g, i)
		h.Write(text)
		text = text[:0]
	}
	h.Write([]byte("]}"))
	return h.Sum()
}

func (b *Builder) appendNode(t []byte, g *workload.Graph, i int) []byte {
	r := &b.rows[i]
	t = b.appendText(t, `{"request_id":`, r.request)
	t = b.appendText(t, `,"play_id":`, r.play)
	if r.ordinal >= 0 {
		t = strconv.AppendInt(append(t, `,"source_play_ordinal":`...), r.ordinal, 10)
	}
	t = b.appendText(t, `,"session_id":`, r.session)
	t = b.appendText(t, `,"model":`, r.model)
	t = strconv.AppendInt(append(t, `,"input_length":`...), int64(r.input), 10)
	t = strconv.AppendInt(append(t, `,"max_output_tokens":`...), int64(r.output), 10)
	t = append(t, `,"output_token_ids":`...)
	if r.numOut < 0 {
		t = append(t, `null,"replay_key":null`...)
	} else { // such a request is known by its id where output is replayed
		t = appendList(t, b.out[r.out:r.out+r.numOut])
		t = b.appendText(t, `,"replay_key":`, r.request)
	}
	t = append(t, `,"hash_ids":`...)
	t = appendList(t, b.ids[r.ids:r.ids+r.numIDs])
	t = jsontext.AppendFloat(append(t, `,"not_before_ms":`...), g.Nodes[i].NotBeforeMs)
	if r.hasAPI {
		t = jsontext.AppendFloat(append(t, `,"recorded_api_time_ms":`...), r.apiMs)
	}
	t = strconv.AppendInt(append(t, `,"priority":`...), int64(r.priority), 10)
	t = strconv.AppendUint(append(t, `,"strict_priority":`...), uint64(r.strict), 10)
	t = append(t, `,"policy_class":`...)
	if r.policy < 0 {
		t = append(t, "null"...)
	} else {
		t = b.appendText(t, "", r.policy)
	}
	t = append(t, `,"dependencies":[`...)
	for k, d := range g.Deps[g.Nodes[i].Deps:g.Nodes[i+1].Deps] {
		if k > 0 {
			t = append(t, ',')
		}
		t = b.appendText(t, `{"request_id":`, b.rows[d.Node].request)
		t = append(append(append(t, `,"trigger":"`...), d.Trigger.String()...), `","delay_ms":`...)
		t = jsontext.AppendFloat(t, d.DelayMs)
		t = append(append(append(t, `,"relation":"`...), d.Relation.String()...), `"}`...)
	}
	return append(t, "]}"...)
}

func (b *Builder) appendText(t []byte, before string, text int32) []byte {
	return jsontext.AppendString(append(t, before...), b.texts.At(text))
}

func appendList[T uint32 | uint64](t []byte, list []T) []byte {
	t = append(t, '[')
	for i, n := range list {
		if i > 0 {
			t = append(t, ',')
		}
		t = strconv.AppendUint(t, uint64(n), 10)
	}
	return append(t, ']')
}
