package trace

// Parser reads rows. It owns the buffers that rows alias, so it serves one
// row at a time. The zero Parser is ready for use.
type Parser struct {
	fault  Fault
	hash   []uint64
	wide   []uint64 // output_token_ids before they are narrowed
	out    []uint32
	text   []byte // strings whose escapes had to be resolved
	deps   []Dependency
	floats []float64
	open   []uint64 // one bit per open bracket of an unknown value, 1: '{'
	shape  [12]spell
}

// spell is how a row wrote a key, from its first quote to where its value
// begins. The rows of a trace mostly spell alike, so the parser first compares
// with the row before.
type spell struct {
	field Field
	n     uint8 // 0: none
	text  [30]byte
}

// Line reads one line, without its line end, into row. On a fault row holds
// nothing of use.
func (p *Parser) Line(line []byte, row *Row) Fault {
	*row = Row{InputLength: -1, OutputLength: -1}
	p.fault = Fault{}
	p.text = p.text[:0]
	if !p.object(line, row) {
		return p.fault
	}
	return Fault{}
}

// object reads the whole line as a row.
func (p *Parser) object(line []byte, row *Row) bool {
	i := space(line, 0)
	if i == len(line) {
		return p.fail(CutOff, NoField, i, i)
	}
	if line[i] != '{' {
		return p.notObject(line, i)
	}
	if i = p.fields(line, space(line, i+1), row); i < 0 {
		return false
	}
	if i = space(line, i); i < len(line) {
		return p.fail(Trailing, NoField, i, len(line))
	}
	if row.HashIDs == nil {
		return p.fail(Missing, HashIDs, 0, 0)
	}
	if row.OutputLength < 0 {
		return p.fail(Missing, OutputLength, 0, 0)
	}
	return true
}

// fields reads what is between the braces and the closing one.
func (p *Parser) fields(line []byte, i int, row *Row) int {
	if i < len(line) && line[i] == '}' {
		return i + 1
	}
	seen := uint32(0)
	for n := 0; ; n++ {
		key := i
		f, at := p.likely(line, i, n)
		if at < 0 {
			return -1
		}
		if f != NoField && seen>>f&1 != 0 {
			i = p.stop(Duplicate, f, key, at)
		} else {
			seen |= 1 << f
			i = p.value(line, at, f, row)
		}
		if i < 0 {
			p.fault.Key = key
			return -1
		}
		if i = space(line, i); i == len(line) {
			return p.stop(CutOff, NoField, i, i)
		}
		switch line[i] {
		case ',':
			i = space(line, i+1)
		case '}':
			return i + 1
		default:
			return p.stop(WantCommaOrBrace, NoField, i, i)
		}
	}
}

// notObject says why a line whose first byte is not '{' is no row.
func (p *Parser) notObject(line []byte, i int) bool {
	if rest := line[i:]; len(rest) >= 3 && rest[0] == 0xEF && rest[1] == 0xBB && rest[2] == 0xBF {
		return p.fail(ByteOrderMark, NoField, i, i+3)
	}
	return p.fail(NotObject, NoField, i, len(line))
}

// likely reads the n-th key of the row as key does, quickly if it is spelled
// like the n-th key of the row before.
func (p *Parser) likely(line []byte, i, n int) (Field, int) {
	if n >= len(p.shape) {
		return p.key(line, i)
	}
	s := &p.shape[n]
	if end := i + int(s.n); s.n > 0 && end < len(line) && string(line[i:end]) == string(s.text[:s.n]) &&
		line[end] > ' ' {
		return s.field, end
	}
	field, at := p.key(line, i)
	if s.n = 0; at >= 0 && at-i <= len(s.text) {
		s.field, s.n = field, uint8(copy(s.text[:], line[i:at]))
	}
	return field, at
}

// key reads a key of the row, its colon and the space around it. It returns
// the key's field and where its value begins, -1 on a fault.
func (p *Parser) key(line []byte, i int) (Field, int) {
	if i == len(line) {
		return NoField, p.stop(CutOff, NoField, i, i)
	}
	if line[i] != '"' {
		return NoField, p.stop(WantKey, NoField, i, i)
	}
	start := len(p.text)
	text, i := p.str(line, i, NoField)
	if i < 0 {
		return NoField, -1
	}
	field := fieldOf(text)
	p.text = p.text[:start]
	return field, p.colon(line, i)
}

// colon reads ':' and the space around it.
func (p *Parser) colon(line []byte, i int) int {
	if i = space(line, i); i == len(line) {
		return p.stop(CutOff, NoField, i, i)
	}
	if line[i] != ':' {
		return p.stop(WantColon, NoField, i, i)
	}
	if i = space(line, i+1); i == len(line) {
		return p.stop(CutOff, NoField, i, i)
	}
	return i
}

// value reads the value of a field into row. It returns where the value ends,
// -1 on a fault. null is as good as absent.
func (p *Parser) value(line []byte, i int, f Field, row *Row) int {
	if line[i] == 'n' {
		return p.literal(line, i, "null", f)
	}
	switch f {
	case NoField:
		return p.skip(line, i)
	case InputLength:
		return p.whole(line, i, f, 1<<63-1, &row.InputLength)
	case OutputLength:
		return p.whole(line, i, f, 1<<63-1, &row.OutputLength)
	case HashIDs:
		if p.hash, i = p.list(line, i, f, 1<<64-1, p.hash[:0]); i >= 0 {
			row.HashIDs = present(p.hash)
		}
	case OutputIDs:
		if p.wide, i = p.list(line, i, f, 1<<32-1, p.wide[:0]); i >= 0 {
			p.out = p.out[:0]
			for _, id := range p.wide {
				p.out = append(p.out, uint32(id))
			}
			row.OutputIDs, row.HasOutputIDs = p.out, true
		}
	case Timestamp:
		i = p.float(line, i, f, &row.TimestampMs)
		row.HasTimestamp = true
	case Delay:
		i = p.float(line, i, f, &row.DelayMs)
		row.HasDelay = true
	case Priority:
		var v int64
		i = p.signed(line, i, f, 1<<31-1, &v)
		row.Priority = int32(v)
	case StrictPriority:
		var v int64
		i = p.whole(line, i, f, 1<<32-1, &v)
		row.StrictPriority = uint32(v)
	case RequestID:
		row.RequestID, i = p.str(line, i, f)
	case SessionID:
		row.SessionID, i = p.str(line, i, f)
	case PolicyClass:
		row.PolicyClass, i = p.str(line, i, f)
	}
	return i
}

// present tells an empty list from an absent one.
func present(ids []uint64) []uint64 {
	if ids == nil {
		return []uint64{}
	}
	return ids
}

// space skips JSON's white space.
func space(line []byte, i int) int {
	for i < len(line) {
		if c := line[i]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			break
		}
		i++
	}
	return i
}

// fail notes the fault and returns false.
func (p *Parser) fail(c Code, f Field, start, end int) bool {
	p.fault = Fault{Code: c, Field: f, Start: start, End: end}
	return false
}

// stop notes the fault and returns -1, the position after a fault.
func (p *Parser) stop(c Code, f Field, start, end int) int {
	p.fail(c, f, start, end)
	return -1
}
