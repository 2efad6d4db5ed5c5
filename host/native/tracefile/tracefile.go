// Package tracefile loads traces from files: plain text, gzip (of any number
// of members), zstd, or standard input, in any of the formats it knows.
//
// It owns reading and decompression, telling formats apart, the loop that
// feeds core/trace and core/workload, and the sentences for everything that
// can be wrong with a trace. It does not decide what a row means
// (core/workload does).
//
// A file is streamed through one fixed buffer; its text is never held as a
// whole. Every error is one sentence that names the file, the line if there is
// one, the field, what was found and what is accepted.
package tracefile

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/core/workload"
)

// chunk is how much text is parsed at a time, in bytes.
const chunk = intake.Most

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Options say how a trace is read and what its times mean.
type Options struct {
	TraceBlockSize int // tokens per hash id, > 0, where the trace does not say it
	WantBlockSize  int // what a trace that says it must say; 0: anything
	Format         Format
	Concurrency    bool    // sessions are started by a cap, not by their timestamps
	ArrivalSpeedup float64 // > 0, finite; used unless Concurrency or AsWritten

	// Of traces without hash ids: the share of a first prompt's blocks, from 0
	// to 1, that the conversations of a group have in common, and the groups.
	SharedPrefixRatio float64
	PrefixGroups      uint32

	// Of traces whose requests wait for each other: the plays under way at
	// once (0: all, at their own times) and the model to run them on.
	Lanes          int
	ExecutionModel string

	NestedBasis weka.Basis // of Weka traces: what times in subagents count from

	AsWritten bool // times stay as they are, and what a run would need may be missing: the workload is not for one

	Survey   Survey                  // looks at the rows, as they are written; nil: nobody does
	Into     Into                    // takes the rows, so that there is no workload; nil: Load does
	MaxLine  int                     // longest line in bytes; 0: trace.MaxLine
	Stdin    io.Reader               // what Stdin means; nil: os.Stdin
	Progress func(read, total int64) // after each chunk: bytes of the file; total -1: unknown
}

// Info is what loading has counted.
type Info struct {
	Lines int64 // blank ones included
	Rows  int64 // requests, or rows of the trace
	Bytes int64 // of text
	Read  int64 // of the file, as it is stored

	Failed int64 // rows left out, for their requests failed
}

// Error is everything wrong with a trace but a cancelled context.
type Error struct {
	File string // as it was given; "standard input" for Stdin
	Line int64  // from 1, 0: no line
	Text string // the sentence without them
	Err  error  // of reading, nil: the trace is at fault

	Usage bool // the trace may be right, but does not go with the options
}

// Error is the sentence.
func (e *Error) Error() string {
	if e.Line > 0 {
		return e.File + ":" + strconv.FormatInt(e.Line, 10) + ": " + e.Text
	}
	return e.File + ": " + e.Text
}

// Unwrap is the error of reading.
func (e *Error) Unwrap() error { return e.Err }

// Trace is a loaded trace.
type Trace struct {
	Workload *workload.Workload // nil after a survey of Mooncake rows, or one that has found bad rows
	Format   Format
	Info     Info
}

// Load reads the trace of the files at paths. Errors are an *Error or that of
// ctx; with one the trace says how far reading came.
func Load(ctx context.Context, paths []string, o Options) (*Trace, error) {
	if o.MaxLine == 0 {
		o.MaxLine = trace.MaxLine
	}
	if o.Survey != nil {
		o.AsWritten = true
	}
	if o.AsWritten {
		o.ArrivalSpeedup = 1
	}
	l := &loader{opts: o, format: o.Format, files: len(paths)}
	t := &Trace{}
	var err error
	if len(paths) == 1 && (o.Format == Auto || o.Format == Weka) && isDirectory(paths[0]) {
		l.root = paths[0]
		paths, err = l.directory()
	}
	if err != nil {
		return t, err
	}
	l.all = len(paths)
	for _, path := range paths {
		if err = l.file(ctx, path); err != nil {
			break
		}
	}
	if _, all := l.reader.(*surveyed); err == nil && (l.bad == nil || all) {
		t.Workload, err = l.reader.finish()
	}
	if err == nil {
		err = l.bad
	}
	t.Format, t.Info = l.format, l.info
	return t, err
}

// reader makes a workload of the lines of one format.
type reader interface {
	line(text []byte) error // the loader's next line that is not blank
	finish() (*workload.Workload, error)
}

// loader is one Load.
type loader struct {
	src    *source
	opts   Options
	format Format
	info   Info
	files  int      // that were asked for
	all    int      // files there are; of a directory more than that
	root   string   // the directory that was asked for, "": files
	names  []string // of the files so far, for sentences
	before Info     // of the files before this one
	split  *trace.Splitter
	reader reader
	bad    error          // the first bad row that a survey went on after
	read   *intake.Reader // of the reader, where it has one
}

// file reads one file.
func (l *loader) file(ctx context.Context, path string) error {
	src, err := open(path, l.opts.Stdin)
	if err != nil {
		return err
	}
	defer src.close()
	l.src, l.split, l.before = src, trace.NewSplitter(l.opts.MaxLine), l.info
	l.names = append(l.names, src.name)
	if l.reader != nil {
		if err := l.begin(); err != nil {
			return err
		}
	}
	return l.readAll(ctx)
}

// begin tells the reader, which is chosen, of the file under way.
func (l *loader) begin() error {
	within := l.src.name
	if l.format == Weka {
		var err error
		if within, err = l.beginObjects(); err != nil {
			return err
		}
	}
	switch {
	case l.opts.Into != nil:
		l.opts.Into.File(within, l.src.total)
	case l.read != nil:
		l.read.File(within, l.src.total)
		l.split = trace.NewSplitter(l.read.MaxLine())
	}
	return nil
}

// end ends it.
func (l *loader) end() error {
	if l.format == Weka && l.src.stored.n != l.src.total {
		return l.fail(0, "changed while it was read, want a file that does not")
	}
	if l.read == nil {
		return nil
	}
	if f := l.read.EndFile(); f != nil {
		return l.sentence(f)
	}
	return nil
}

// choose makes the reader for the trace that begins with text.
func (l *loader) choose(text []byte) error {
	if l.format == Auto {
		l.format = intake.Detect(text)
	}
	if l.root != "" && l.format != Weka {
		return &Error{File: l.root, Text: "is a directory, and " + l.relative(l.src.name) + " in it looks like " + l.format.String() +
			"; want a trace file, or a directory of files in the format weka"}
	}
	if err := l.rules(); err != nil {
		return err
	}
	switch {
	case l.opts.Into != nil:
		l.reader = elsewhere{}
	case l.opts.Survey != nil && (l.format == Mooncake || l.format == MooncakeDelta):
		l.reader = newSurveyed(l)
	default:
		l.read = intake.NewReader(l.intake())
		l.reader = &local{loader: l, read: l.read}
	}
	return l.begin()
}

// readAll feeds the whole source to the reader.
func (l *loader) readAll(ctx context.Context) error {
	buf := make([]byte, chunk)
	for end, reserved := false, false; !end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := l.fill(buf)
		var wrong *Error
		if errors.As(err, &wrong) {
			return err
		}
		l.count(buf[:n])
		if l.read != nil && l.read.Single() {
			if err := l.whole(ctx, slices.Clone(buf[:n]), l.read); err != nil {
				return err
			}
			return l.end()
		}
		end = err == io.EOF
		if fault := l.take(buf[:n], end); fault != nil {
			return fault
		}
		if err != nil && err != io.EOF {
			return l.readError(err)
		}
		if !reserved && !end {
			l.reserve()
			reserved = true
		}
		if l.opts.Progress != nil {
			l.opts.Progress(l.src.stored.n, l.src.total)
		}
	}
	return l.end()
}

// count notes text that was read.
func (l *loader) count(text []byte) {
	l.info.Bytes += int64(len(text))
	l.info.Read = l.before.Read + l.src.stored.n
	if l.read != nil {
		l.read.Raw(text)
	}
}

// fill reads into buf. The first time it reads until there is a whole line to
// tell the format by, or all it can of what may be one object.
func (l *loader) fill(buf []byte) (n int, err error) {
	if l.reader != nil {
		return l.src.text.Read(buf)
	}
	for err == nil && !intake.Tells(buf[:n], l.src.name) {
		var more int
		more, err = l.src.text.Read(buf[n:])
		n += more
	}
	if wrong := l.choose(buf[:n]); wrong != nil {
		return 0, wrong
	}
	return n, err
}

// reserve makes room for the rows to come, judging by those so far. Rows far
// shorter than the rest of the trace could make the guess absurd, so it is
// bounded; more rows than guessed only cost copying.
func (l *loader) reserve() {
	const most = 1 << 20
	if l.src.total <= l.info.Read || l.info.Rows == 0 {
		return
	}
	rest := float64(l.src.total-l.info.Read) / float64(l.info.Read)
	rows := int(min(float64(l.info.Rows)*rest*1.05+16, most))
	switch {
	case l.opts.Into != nil:
		l.opts.Into.Reserve(rows)
	case l.read != nil:
		l.read.Reserve(rows)
	}
}

// take takes a chunk of the text, the last one with end.
func (l *loader) take(text []byte, end bool) error {
	if l.opts.Into != nil {
		return l.hand(text, end)
	}
	if end {
		l.split.Close()
	}
	l.split.Feed(text)
	return l.lines()
}

// lines takes the lines that are complete by now.
func (l *loader) lines() error {
	for {
		line, ok := l.split.Next()
		l.info.Lines = l.before.Lines + l.split.Line()
		if !ok {
			if f := l.split.Fault(); f.Code != trace.OK {
				return l.lineError(f, nil)
			}
			return nil
		}
		if err := l.reader.line(line); err != nil {
			if !l.goesOn(err) {
				return err
			}
		}
	}
}

// fail makes an Error about the source.
func (l *loader) fail(line int64, text string) error {
	return &Error{File: l.src.name, Line: line, Text: text}
}

// readError words a failure in the middle of the source.
func (l *loader) readError(err error) error {
	e := &Error{File: l.src.name, Err: err}
	after := ""
	line := int64(0)
	switch {
	case l.opts.Into != nil:
		line = l.info.Lines - l.before.Lines
	case l.split != nil:
		line = l.split.Line()
	}
	if line > 0 {
		after = " after line " + strconv.FormatInt(line, 10)
	}
	switch {
	case l.src.coding == "":
		e.Text = "cannot be read" + after + ": " + reason(err)
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Text = "the " + l.src.coding + " data end too early" + after + "; want the complete file"
	case l.src.stored.err != nil && l.src.stored.err != io.EOF:
		e.Text = "cannot be read" + after + ": " + reason(l.src.stored.err)
	default:
		e.Text = "the " + l.src.coding + " data are damaged" + after + " (" + plainText(err.Error()) + ")"
	}
	return e
}

// reason is an error of the system without what the sentence says anyway.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return plainText(err.Error())
}
