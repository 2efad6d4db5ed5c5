package trace

// members reads the object that begins at i: every key is looked up with find
// and its value read by value, which returns where the value ends. A field may
// come once. It returns where the object ends, -1 on a fault.
func (p *Parser) members(line []byte, i int, find func(key []byte) Field, value func(i int, f Field) int) int {
	i = space(line, i+1)
	if i < len(line) && line[i] == '}' {
		return i + 1
	}
	var seen [4]uint64
	for {
		key := i
		f, at := p.keyOf(line, i, find)
		if at < 0 {
			return -1
		}
		switch word, bit := &seen[f>>6], uint64(1)<<(f&63); {
		case f == NoField:
			i = p.skip(line, at)
		case *word&bit != 0:
			i = p.stop(Duplicate, f, key, at)
		default:
			*word |= bit
			i = value(at, f)
		}
		if i < 0 {
			if p.fault.Key == 0 { // else it is an inner object's
				p.fault.Key = key
			}
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

// keyOf is key with another table of fields.
func (p *Parser) keyOf(line []byte, i int, find func(key []byte) Field) (Field, int) {
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
	field := find(text)
	p.text = p.text[:start]
	return field, p.colon(line, i)
}

// items reads the list that begins at i, each item by item, which returns
// where it ends.
func (p *Parser) items(line []byte, i int, f Field, item func(i int) int) int {
	if line[i] != '[' {
		return p.wrong(line, i, f)
	}
	i = space(line, i+1)
	if i < len(line) && line[i] == ']' {
		return i + 1
	}
	for {
		if i == len(line) {
			return p.stop(CutOff, f, i, i)
		}
		if i = item(i); i < 0 {
			return -1
		}
		if i = space(line, i); i == len(line) {
			return p.stop(CutOff, f, i, i)
		}
		switch line[i] {
		case ',':
			i = space(line, i+1)
		case ']':
			return i + 1
		default:
			return p.stop(WantCommaOrClose, f, i, i)
		}
	}
}

// inner reads the value of f as an object.
func (p *Parser) inner(line []byte, i int, f Field, find func(key []byte) Field, value func(i int, f Field) int) int {
	if line[i] != '{' {
		return p.wrong(line, i, f)
	}
	return p.members(line, i, find, value)
}

// whole0 reads the line as one object of a row and nothing else.
func (p *Parser) whole0(line []byte, find func(key []byte) Field, value func(i int, f Field) int) bool {
	p.fault, p.text = Fault{}, p.text[:0]
	i := space(line, 0)
	if i == len(line) {
		return p.fail(CutOff, NoField, i, i)
	}
	if line[i] != '{' {
		return p.notObject(line, i)
	}
	if i = p.members(line, i, find, value); i < 0 {
		return false
	}
	if i = space(line, i); i < len(line) {
		return p.fail(Trailing, NoField, i, len(line))
	}
	return true
}

// null is true where the value at i is null or a mistake for it; end is where
// it ends, -1 on a fault. A field that need not be there may be null.
func (p *Parser) null(line []byte, i int, f Field) (end int, yes bool) {
	if line[i] != 'n' {
		return 0, false
	}
	return p.literal(line, i, "null", f), true
}

// word reads a string that is one of words and returns its place among them.
func (p *Parser) word(line []byte, i int, f Field, at *int8, words ...string) int {
	text, end := p.str(line, i, f)
	if end < 0 {
		return -1
	}
	for n, w := range words {
		if string(text) == w {
			*at = int8(n)
			return end
		}
	}
	return p.stop(WrongWord, f, i, end)
}

// Keys shows the keys of the object that text begins with, and the text of
// each value and what follows it, until visit says false or the text ends or
// is no JSON any more. It is for a first look at a trace.
func (p *Parser) Keys(text []byte, visit func(key, value []byte) bool) {
	p.fault, p.text = Fault{}, p.text[:0]
	i := space(text, 0)
	if i == len(text) || text[i] != '{' {
		return
	}
	for i = space(text, i+1); i < len(text) && text[i] == '"'; i = space(text, i+1) {
		var key []byte
		if key, i = p.str(text, i, NoField); i < 0 {
			return
		}
		if i = p.colon(text, i); i < 0 || !visit(key, text[i:]) {
			return
		}
		if i = p.skip(text, i); i < 0 {
			return
		}
		if i = space(text, i); i == len(text) || text[i] != ',' {
			return
		}
	}
}
