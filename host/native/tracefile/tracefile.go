// Package tracefile loads Mooncake traces from files: plain JSON lines, gzip
// (of any number of members), zstd, or standard input.
//
// It owns reading and decompression, the loop that feeds core/trace and
// core/workload, and the sentences for everything that can be wrong with a
// trace. It does not decide what a row means (core/workload does).
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
	"strconv"

	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/workload"
)

// chunk is how much text is parsed at a time, in bytes.
const chunk = 128 << 10

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Options say how a trace is read and what its times mean.
type Options struct {
	TraceBlockSize int     // tokens per hash id, > 0
	Concurrency    bool    // sessions are started by a cap, not by their timestamps
	ArrivalSpeedup float64 // > 0, finite; used unless Concurrency

	MaxLine  int                     // longest line in bytes; 0: trace.MaxLine
	Stdin    io.Reader               // what Stdin means; nil: os.Stdin
	Progress func(read, total int64) // after each chunk: bytes of the file; total -1: unknown
}

// Info is what loading has counted.
type Info struct {
	Lines int64 // blank ones included
	Rows  int64
	Bytes int64 // of text
	Read  int64 // of the file, as it is stored
}

// Error is everything wrong with a trace but a cancelled context.
type Error struct {
	File string // as it was given; "standard input" for Stdin
	Line int64  // from 1, 0: no line
	Text string // the sentence without them
	Err  error  // of reading, nil: the trace is at fault
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

// Load reads the trace at path. Errors are an *Error or that of ctx.
func Load(ctx context.Context, path string, o Options) (*workload.Workload, Info, error) {
	src, err := open(path, o.Stdin)
	if err != nil {
		return nil, Info{}, err
	}
	defer src.close()
	l := newLoader(src, o)
	if err := l.read(ctx); err != nil {
		return nil, l.info, err
	}
	w, f := l.build.Finish(workload.Options{Concurrency: o.Concurrency, ArrivalSpeedup: o.ArrivalSpeedup})
	if f.Code != workload.OK {
		return nil, l.info, l.buildError(f, nil)
	}
	return w, l.info, nil
}

// loader is one Load.
type loader struct {
	src   *source
	opts  Options
	info  Info
	split *trace.Splitter
	parse trace.Parser
	build *workload.Builder
	row   trace.Row
}

func newLoader(src *source, o Options) *loader {
	if o.MaxLine == 0 {
		o.MaxLine = trace.MaxLine
	}
	return &loader{
		src:   src,
		opts:  o,
		split: trace.NewSplitter(o.MaxLine),
		build: workload.NewBuilder(o.TraceBlockSize),
	}
}

// read feeds the whole source to the builder.
func (l *loader) read(ctx context.Context) error {
	buf := make([]byte, chunk)
	for end, reserved := false, false; !end; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := l.src.text.Read(buf)
		l.info.Bytes += int64(n)
		l.info.Read = l.src.stored.n
		if err == io.EOF {
			end = true
			l.split.Close()
		}
		l.split.Feed(buf[:n])
		if fault := l.lines(); fault != nil {
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
			l.opts.Progress(l.info.Read, l.src.total)
		}
	}
	return nil
}

// reserve makes room for the rows to come, judging by those so far. Rows far
// shorter than the rest of the trace could make the guess absurd, so it is
// bounded; more rows than guessed only cost copying.
func (l *loader) reserve() {
	const most = 1 << 20
	if l.src.total > l.info.Read && l.info.Rows > 0 {
		rest := float64(l.src.total-l.info.Read) / float64(l.info.Read)
		l.build.Reserve(int(min(float64(l.info.Rows)*rest*1.05+16, most)))
	}
}

// lines takes the lines that are complete by now.
func (l *loader) lines() error {
	for {
		line, ok := l.split.Next()
		l.info.Lines = l.split.Line()
		if !ok {
			if f := l.split.Fault(); f.Code != trace.OK {
				return l.lineError(f, nil)
			}
			return nil
		}
		if f := l.parse.Line(line, &l.row); f.Code != trace.OK {
			return l.lineError(f, line)
		}
		if f := l.build.Add(&l.row, l.split.Line()); f.Code != workload.OK {
			return l.buildError(f, &l.row)
		}
		l.info.Rows++
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
	if l.info.Lines > 0 {
		after = " after line " + strconv.FormatInt(l.info.Lines, 10)
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
