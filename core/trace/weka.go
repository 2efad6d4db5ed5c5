package trace

// WekaTrace is one object of a Weka trace: what an agent and the agents it
// called asked for (replay notes §3.7). Slices alias the text and the parser's
// buffers and are valid until the next object.
type WekaTrace struct {
	ID        []byte
	Models    [][]byte
	BlockSize int64
	Entries   []WekaEntry // those of a subagent follow it
	Hashes    []uint64    // of all entries

	Outer, Inner int32 // where a fault is: index of the entry and of the one nested in it, -1: none
}

// WekaEntry is a request, or the marker of a subagent.
type WekaEntry struct {
	Subagent bool
	Nested   bool // in the subagent before
	TimeS    float64

	// Of a request. Its hash ids are Hashes[From:To].
	Model    []byte
	Input    int64 // tokens
	Output   int64 // tokens
	From, To int
	APITimeS float64
	HasAPI   bool

	// Of a subagent.
	Agent       []byte
	Background  bool
	DurationMs  int64
	HasDuration bool
}

// Weka reads one object and nothing else.
func (p *Parser) Weka(text []byte, r *WekaTrace) Fault {
	*r = WekaTrace{BlockSize: -1, Models: r.Models[:0], Entries: r.Entries[:0], Outer: -1, Inner: -1}
	p.hash = p.hash[:0]
	var scope int8 = -1
	requests := false
	ok := p.whole0(text, wekaField, func(i int, f Field) (end int) {
		switch f {
		case WekaID:
			r.ID, end = p.str(text, i, f)
			return end
		case WekaModels:
			return p.items(text, i, f, func(i int) int {
				name, end := p.str(text, i, f)
				r.Models = append(r.Models, name)
				return end
			})
		case BlockSize:
			return p.whole(text, i, f, 1<<63-1, &r.BlockSize)
		case HashScope:
			return p.word(text, i, f, &scope, "local")
		}
		requests = true
		end = p.items(text, i, f, func(i int) int {
			r.Outer, r.Inner = r.Outer+1, -1
			return p.wekaEntry(text, i, r, false)
		})
		if end >= 0 {
			r.Outer = -1
		}
		return end
	})
	if !ok {
		return p.fault
	}
	r.Hashes = p.hash
	for _, need := range []struct {
		field  Field
		absent bool
	}{{WekaID, r.ID == nil}, {BlockSize, r.BlockSize < 0}, {HashScope, scope < 0}, {WekaRequests, !requests}} {
		if need.absent {
			return Fault{Code: Missing, Field: need.field}
		}
	}
	return Fault{}
}

// wekaEntry reads a request or a subagent.
func (p *Parser) wekaEntry(text []byte, i int, r *WekaTrace, nested bool) int {
	list := WekaRequests
	if nested {
		list = EntryRequests
	}
	if text[i] != '{' {
		return p.wrong(text, i, list)
	}
	at := len(r.Entries)
	r.Entries = append(r.Entries, WekaEntry{Nested: nested, Subagent: !nested && p.isSubagent(text[i:]), From: len(p.hash), To: len(p.hash)})
	find := requestEntryField
	if r.Entries[at].Subagent {
		find = subagentField
	}
	var seen [8]uint8 // by field from EntryType, a bit each
	end := p.members(text, i, find, func(i int, f Field) int {
		seen[(f-EntryType)>>3] |= 1 << ((f - EntryType) & 7)
		return p.wekaValue(text, i, f, r, at)
	})
	if end < 0 {
		return -1
	}
	needs := []Field{EntryType, EntryTime, EntryModel, EntryInput, EntryOutput}
	if r.Entries[at].Subagent {
		needs = []Field{EntryType, EntryTime, EntryAgent, EntryAgentType, EntryStatus, EntryRequests}
	}
	for _, f := range needs {
		if seen[(f-EntryType)>>3]>>((f-EntryType)&7)&1 == 0 {
			return p.stop(Missing, f, i, end)
		}
	}
	return end
}

// isSubagent looks ahead for the type of the entry that text begins with.
func (p *Parser) isSubagent(text []byte) bool {
	is := false
	save := len(p.text)
	i := space(text, 1)
	for i < len(text) && text[i] == '"' {
		f, at := p.keyOf(text, i, requestEntryField)
		if at < 0 {
			break
		}
		if f == EntryType {
			const word = `"subagent"`
			is = len(text)-at >= len(word) && string(text[at:at+len(word)]) == word
			break
		}
		if i = p.skip(text, at); i < 0 {
			break
		}
		if i = space(text, i); i == len(text) || text[i] != ',' {
			break
		}
		i = space(text, i+1)
	}
	p.fault, p.text = Fault{}, p.text[:save]
	return is
}

// wekaValue reads a field of an entry.
func (p *Parser) wekaValue(text []byte, i int, f Field, r *WekaTrace, at int) (end int) {
	e := &r.Entries[at]
	switch f {
	case EntryType:
		var kind int8
		if e.Subagent {
			return p.word(text, i, f, &kind, "subagent")
		}
		return p.word(text, i, f, &kind, "n", "s")
	case EntryTime:
		return p.float(text, i, f, &e.TimeS)
	case EntryModel:
		e.Model, end = p.str(text, i, f)
		return end
	case EntryInput:
		return p.whole(text, i, f, 1<<63-1, &e.Input)
	case EntryOutput:
		return p.whole(text, i, f, 1<<63-1, &e.Output)
	case EntryHashes:
		p.hash, end = p.list(text, i, f, 1<<64-1, p.hash)
		e.To = len(p.hash)
		return end
	case EntryAgent:
		e.Agent, end = p.str(text, i, f)
		return end
	case EntryAgentType:
		_, end = p.str(text, i, f)
		return end
	case EntryStatus:
		var status int8
		end = p.word(text, i, f, &status, "completed", "async_launched")
		e.Background = status == 1
		return end
	case EntryRequests:
		end = p.items(text, i, f, func(i int) int {
			r.Inner++
			return p.wekaEntry(text, i, r, true)
		})
		if end >= 0 {
			r.Inner = -1
		}
		return end
	}
	if end, yes := p.null(text, i, f); yes {
		return end
	}
	if f == EntryAPITime {
		e.HasAPI = true
		return p.float(text, i, f, &e.APITimeS)
	}
	e.HasDuration = true
	return p.signed(text, i, f, 1<<63-1, &e.DurationMs)
}

func wekaField(key []byte) Field {
	switch string(key) {
	case "id":
		return WekaID
	case "models":
		return WekaModels
	case "block_size":
		return BlockSize
	case "hash_id_scope":
		return HashScope
	case "requests":
		return WekaRequests
	}
	return NoField
}

func requestEntryField(key []byte) Field {
	switch string(key) {
	case "type":
		return EntryType
	case "t":
		return EntryTime
	case "model":
		return EntryModel
	case "in":
		return EntryInput
	case "out":
		return EntryOutput
	case "hash_ids":
		return EntryHashes
	case "api_time":
		return EntryAPITime
	}
	return NoField
}

func subagentField(key []byte) Field {
	switch string(key) {
	case "type":
		return EntryType
	case "t":
		return EntryTime
	case "agent_id":
		return EntryAgent
	case "subagent_type":
		return EntryAgentType
	case "status":
		return EntryStatus
	case "duration_ms":
		return EntryDuration
	case "requests":
		return EntryRequests
	}
	return NoField
}
