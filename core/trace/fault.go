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
)

// Field names a field of a row; a field with two names is one Field.
type Field uint8

// The fields. NoField is a key the row does not know.
const (
	NoField Field = iota
	RequestID
	SessionID
	InputLength
	OutputLength
	OutputIDs
	HashIDs
	Timestamp
	Delay
	Priority
	StrictPriority
	PolicyClass
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

// Name is the field's first name, as the reference writes it.
func (f Field) Name() string {
	switch f {
	case RequestID:
		return "request_id"
	case SessionID:
		return "session_id"
	case InputLength:
		return "input_length"
	case OutputLength:
		return "output_length"
	case OutputIDs:
		return "output_token_ids"
	case HashIDs:
		return "hash_ids"
	case Timestamp:
		return "timestamp"
	case Delay:
		return "delay"
	case Priority:
		return "priority"
	case StrictPriority:
		return "strict_priority"
	case PolicyClass:
		return "policy_class"
	}
	return ""
}

// Alias is the field's other name, "" where it has none.
func (f Field) Alias() string {
	switch f {
	case InputLength:
		return "input_tokens"
	case OutputLength:
		return "output_tokens"
	case Timestamp:
		return "created_time"
	case Delay:
		return "delay_ms"
	}
	return ""
}

// fieldOf finds the field of a key.
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
