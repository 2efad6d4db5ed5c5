package trace

// skip walks over any JSON value that begins at i and checks it. It returns
// the value's end, -1 on a fault. Nesting is kept in p.open, so depth costs
// neither stack nor a limit.
func (p *Parser) skip(line []byte, i int) int {
	depth := 0
	for {
		if i == len(line) {
			return p.stop(CutOff, NoField, i, i)
		}
		c := line[i]
		switch {
		case c == '{' || c == '[':
			i = space(line, i+1)
			if i < len(line) && line[i] == c+2 { // '}' and ']' come two after
				i++
				break
			}
			p.push(depth, c == '{')
			depth++
			if c == '{' {
				if i = p.member(line, i); i < 0 {
					return -1
				}
			}
			continue
		case c == '"':
			i, _ = p.quoted(line, i, NoField)
		case isDigit(c) || c == '-':
			i = p.scan(line, i, NoField)
		case c == 't':
			i = p.literal(line, i, "true", NoField)
		case c == 'f':
			i = p.literal(line, i, "false", NoField)
		case c == 'n':
			i = p.literal(line, i, "null", NoField)
		default:
			return p.stop(WantValue, NoField, i, i)
		}
		if i < 0 {
			return -1
		}
		if i, depth = p.leave(line, i, depth); i < 0 || depth == 0 {
			return i
		}
	}
}

// leave reads what may follow a value at some depth: closing brackets, then a
// comma and, in an object, the next key. It returns where the next value
// begins, or depth 0 and where the outermost value ends.
func (p *Parser) leave(line []byte, i, depth int) (next, at int) {
	for depth > 0 {
		if i = space(line, i); i == len(line) {
			return p.stop(CutOff, NoField, i, i), 0
		}
		inObject := p.open[(depth-1)>>6]>>((depth-1)&63)&1 != 0
		c := line[i]
		switch {
		case c == ',':
			i = space(line, i+1)
			if inObject {
				i = p.member(line, i)
			}
			return i, depth
		case c == '}' && inObject, c == ']' && !inObject:
			depth--
			i++
		case inObject:
			return p.stop(WantCommaOrBrace, NoField, i, i), 0
		default:
			return p.stop(WantCommaOrClose, NoField, i, i), 0
		}
	}
	return i, 0
}

// push notes that the bracket at this depth is '{' or '['.
func (p *Parser) push(depth int, object bool) {
	if depth>>6 == len(p.open) {
		p.open = append(p.open, 0)
	}
	bit := uint64(1) << (depth & 63)
	p.open[depth>>6] &^= bit
	if object {
		p.open[depth>>6] |= bit
	}
}

// member reads a key that is not kept and its colon.
func (p *Parser) member(line []byte, i int) int {
	if i == len(line) {
		return p.stop(CutOff, NoField, i, i)
	}
	if line[i] != '"' {
		return p.stop(WantKey, NoField, i, i)
	}
	if i, _ = p.quoted(line, i, NoField); i < 0 {
		return -1
	}
	return p.colon(line, i)
}

// literal walks over true, false or null.
func (p *Parser) literal(line []byte, i int, word string, f Field) int {
	for n := 0; n < len(word); n++ {
		if i+n == len(line) {
			return p.stop(CutOff, f, i+n, i+n)
		}
		if line[i+n] != word[n] {
			return p.stop(WantValue, f, i, i)
		}
	}
	return i + len(word)
}
