package trace

// Code says what is wrong with a line. The zero Code is no fault.
type Code uint8

// The codes. Of a syntax code Start is the byte that does not fit; of a value
// code Start and End enclose the value.
const (
	OK Code = iota

	CutOff           // the line ends inside the row
	NotObject        // the line is some other JSON value or no JSON
	ByteOrderMark    // the line begins with U+FEFF
	WantKey          // a key in double quotes belongs here
	WantColon        // ':' belongs here
	WantCommaOrBrace // ',' or '}' belongs here
	WantCommaOrClose // ',' or ']' belongs here
	WantValue        // a JSON value belongs here
	BadNumber        // not a JSON number
	BadEscape        // not a JSON escape
	LoneSurrogate    // half of a \u surrogate pair where text matters
	ControlByte      // an unescaped byte below 0x20 in a string
	BadUTF8          // a string is not UTF-8
	Trailing         // something follows the row
	LineTooLong      // the line is longer than the splitter's limit

	Duplicate  // Field is given twice, maybe under its other name
	Missing    // Field is required
	WrongType  // the value of Field is of another type
	OutOfRange // the value of Field is a number outside its range
	WrongWord  // the value of Field is none of the words it may be
	WrongCells // a row has more or fewer cells than the header
	OpenQuote  // a quoted cell does not end
)

// Fault is the first thing wrong with a line. Start and End are byte offsets
// into the line; where the line ends too early both are its length.
type Fault struct {
	Code  Code
	Field Field // of a value code: the field; of a syntax code: the field it happened in
	Key   int   // with a Field that is given: where its key begins, with the quote
	Start int
	End   int
}

// fieldOf finds the field of a key of a Mooncake row.
func fieldOf(key []byte) Field {
	switch string(key) {
	case "timestamp", "created_time":
		return Timestamp
	case "input_length", "input_tokens":
		return InputLength
	case "output_length", "output_tokens":
		return OutputLength
	case "hash_ids":
		return HashIDs
	case "session_id":
		return SessionID
	case "delay", "delay_ms":
		return Delay
	case "request_id":
		return RequestID
	case "output_token_ids":
		return OutputIDs
	case "priority":
		return Priority
	case "strict_priority":
		return StrictPriority
	case "policy_class":
		return PolicyClass
	}
	return NoField
}
