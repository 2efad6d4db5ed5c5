package trace

// Table is a kind of table of requests: lines of cells between commas, of which
// the first names the columns. They give times and lengths, no prompts.
type Table uint8

// The tables: the traces that Azure published in 2023 and 2024, and BurstGPT.
const (
	AzureTable Table = iota
	BurstTable
)

// TableRow is one request of a table. The session aliases the line or the
// parser's buffers.
type TableRow struct {
	TimeNs   int64   // since 1970, of Azure
	TimeS    float64 // of BurstGPT
	Input    int64   // tokens
	Output   int64   // tokens
	Session  []byte  // nil: none
	ElapsedS float64 // until the answer was complete, 0: unknown
}

// TableHeader reads the line that names the columns. NoField stands for those
// that say nothing here.
func (p *Parser) TableHeader(line []byte, t Table) ([]Field, Fault) {
	p.fault, p.text = Fault{}, p.text[:0]
	if len(line) >= 3 && line[0] == 0xEF && line[1] == 0xBB && line[2] == 0xBF {
		return nil, Fault{Code: ByteOrderMark, End: 3}
	}
	var columns []Field
	for at := 0; at >= 0; {
		c := p.cell(line, at)
		if p.fault.Code != OK {
			return nil, p.fault
		}
		f := column(t, c.text)
		for _, other := range columns {
			if f != NoField && other == f {
				return nil, Fault{Code: Duplicate, Field: f, Key: c.start, Start: c.start, End: c.end}
			}
		}
		columns, at = append(columns, f), c.next
	}
	needs := []Field{AzureTime, AzureInput, AzureOutput}
	if t == BurstTable {
		needs = []Field{BurstTime, BurstInput, BurstOutput}
	}
	for _, need := range needs {
		missing := true
		for _, f := range columns {
			missing = missing && f != need
		}
		if missing {
			return nil, Fault{Code: Missing, Field: need}
		}
	}
	return columns, Fault{}
}

// TableRow reads a request.
func (p *Parser) TableRow(line []byte, columns []Field, r *TableRow) Fault {
	*r = TableRow{}
	p.fault, p.text = Fault{}, p.text[:0]
	n := 0
	for at := 0; at >= 0; n++ {
		c := p.cell(line, at)
		switch {
		case p.fault.Code != OK:
			return p.fault
		case n == len(columns):
			return Fault{Code: WrongCells, Start: c.start, End: len(line)}
		}
		if code := c.value(p, line, columns[n], r); code != OK {
			return Fault{Code: code, Field: columns[n], Key: c.start, Start: c.start, End: c.end}
		}
		at = c.next
	}
	if n < len(columns) {
		return Fault{Code: WrongCells, Start: len(line), End: len(line)}
	}
	return Fault{}
}

// cell is a cell of a line.
type cell struct {
	text       []byte // without quotes and the space around it
	start, end int    // of the text as it stands there
	next       int    // where the next cell begins, -1: there is none
}

// cell reads the cell that begins at i, which may be the end of the line.
func (p *Parser) cell(line []byte, i int) cell {
	for i < len(line) && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	c := cell{start: i}
	if i < len(line) && line[i] == '"' {
		var ok bool
		if c.text, i, ok = p.unquoted(line, i); !ok {
			p.fail(OpenQuote, NoField, c.start, len(line))
			return c
		}
		c.end = i
		if i = blanks(line, i); i < len(line) && line[i] != ',' {
			p.fail(OpenQuote, NoField, c.start, len(line))
			return c
		}
	} else {
		for i < len(line) && line[i] != ',' {
			i++
		}
		c.end = i
		for c.end > c.start && (line[c.end-1] == ' ' || line[c.end-1] == '\t' || line[c.end-1] == '\r') {
			c.end--
		}
		c.text = line[c.start:c.end:c.end]
	}
	if c.next = i + 1; i == len(line) {
		c.next = -1
	}
	return c
}

// blanks skips what may stand around a cell and at the end of a line.
func blanks(line []byte, i int) int {
	for i < len(line) && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r') {
		i++
	}
	return i
}

// unquoted reads the quoted cell at i, in which two quotes stand for one. It
// returns where the cell ends.
func (p *Parser) unquoted(line []byte, i int) (text []byte, end int, ok bool) {
	start := len(p.text)
	for i++; i < len(line); i++ {
		if line[i] == '"' {
			if i+1 == len(line) || line[i+1] != '"' {
				return p.text[start:len(p.text):len(p.text)], i + 1, true
			}
			i++
		}
		p.text = append(p.text, line[i])
	}
	return nil, i, false
}

// value puts the cell into the row.
func (c *cell) value(p *Parser, line []byte, f Field, r *TableRow) Code {
	switch f {
	case NoField:
	case AzureTime:
		ns, ok := clock(c.text)
		if !ok {
			return WrongType
		}
		r.TimeNs = ns
	case AzureInput, BurstInput:
		return cellCount(c.text, &r.Input)
	case AzureOutput, BurstOutput:
		return cellCount(c.text, &r.Output)
	case BurstSession:
		if len(c.text) > 0 {
			r.Session = c.text
		}
	case BurstTime:
		return p.cellSeconds(c.text, &r.TimeS)
	case BurstElapsed:
		if len(c.text) > 0 {
			return p.cellSeconds(c.text, &r.ElapsedS)
		}
	}
	return OK
}

// cellCount reads an integer from 0.
func cellCount(text []byte, v *int64) Code {
	if len(text) == 0 || digits(text, 0) < len(text) {
		return WrongType
	}
	for _, c := range text {
		d := int64(c - '0')
		if *v > (1<<63-1-d)/10 {
			return OutOfRange
		}
		*v = *v*10 + d
	}
	return OK
}

// cellSeconds reads a number from 0.
func (p *Parser) cellSeconds(text []byte, v *float64) Code {
	if len(text) == 0 || !isDigit(text[0]) || p.scan(text, 0, NoField) != len(text) {
		p.fault = Fault{}
		return WrongType
	}
	if p.float(text, 0, NoField, v) < 0 {
		p.fault = Fault{}
		return OutOfRange
	}
	return OK
}

// clock reads a time of day like 2023-11-16 18:17:03.9799600, with an optional
// offset from UTC like +00:00, as nanoseconds since 1970.
func clock(text []byte) (ns int64, ok bool) {
	const form = "dddd-dd-dd dd:dd:dd"
	if len(text) < len(form) {
		return 0, false
	}
	var part [6]int64
	at := 0
	for i := range len(form) {
		switch c := text[i]; {
		case form[i] == 'd' && isDigit(c):
			part[at] = part[at]*10 + int64(c-'0')
		case form[i] == c && c != 'd', form[i] == ' ' && c == 'T':
			at++
		default:
			return 0, false
		}
	}
	year, month, day, hour, minute, second := part[0], part[1], part[2], part[3], part[4], part[5]
	if year < 1970 || year > 2200 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	fraction, rest, ok := nanoseconds(text[len(form):])
	if !ok {
		return 0, false
	}
	offset, ok := offsetMinutes(rest)
	s := (daysSince1970(year, month, day)*24+hour)*3600 + (minute-offset)*60 + second
	return s*1e9 + fraction, ok
}

// nanoseconds reads a fraction of a second of at most nine digits, if there is
// one.
func nanoseconds(text []byte) (ns int64, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '.' {
		return 0, text, true
	}
	n := digits(text, 1)
	if n == 1 || n > 10 {
		return 0, nil, false
	}
	for i := 1; i < 10; i++ {
		ns *= 10
		if i < n {
			ns += int64(text[i] - '0')
		}
	}
	return ns, text[n:], true
}

// offsetMinutes reads an offset from UTC; none is 0.
func offsetMinutes(text []byte) (minutes int64, ok bool) {
	switch {
	case len(text) == 0, len(text) == 1 && text[0] == 'Z':
		return 0, true
	case len(text) != 6 || text[0] != '+' && text[0] != '-' || text[3] != ':' || digits(text, 1) != 3 || digits(text, 4) != 6:
		return 0, false
	}
	hours, rest := int64(text[1]-'0')*10+int64(text[2]-'0'), int64(text[4]-'0')*10+int64(text[5]-'0')
	if minutes = hours*60 + rest; text[0] == '-' {
		minutes = -minutes
	}
	return minutes, hours < 24 && rest < 60
}

func leap(year int64) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int64) int64 {
	switch {
	case month == 2 && leap(year):
		return 29
	case month == 2:
		return 28
	case month == 4, month == 6, month == 9, month == 11:
		return 30
	}
	return 31
}

// daysSince1970 is how many days before a date have passed since 1970, which
// it is not before.
func daysSince1970(year, month, day int64) int64 {
	past := year - 1
	days := (year-1970)*365 + (past/4 - past/100 + past/400) - (1969/4 - 1969/100 + 1969/400)
	for m := int64(1); m < month; m++ {
		days += daysIn(year, m)
	}
	return days + day - 1
}

func column(t Table, name []byte) Field {
	if t == AzureTable {
		switch string(name) {
		case "TIMESTAMP":
			return AzureTime
		case "ContextTokens":
			return AzureInput
		case "GeneratedTokens":
			return AzureOutput
		}
		return NoField
	}
	switch string(name) {
	case "Timestamp":
		return BurstTime
	case "Session ID":
		return BurstSession
	case "Elapsed time":
		return BurstElapsed
	case "Request tokens":
		return BurstInput
	case "Response tokens":
		return BurstOutput
	}
	return NoField
}

// Columns shows the names of the columns of a table whose first line text
// begins with, until visit says false or the line ends. It is for a first look
// at a trace.
func (p *Parser) Columns(text []byte, visit func(name []byte) bool) {
	p.fault, p.text = Fault{}, p.text[:0]
	for i, c := range text {
		if c == '\n' {
			text = text[:i]
			break
		}
	}
	for at := 0; at >= 0; {
		c := p.cell(text, at)
		if p.fault.Code != OK || !visit(c.text) {
			return
		}
		at = c.next
	}
}
