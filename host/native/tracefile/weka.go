package tracefile

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dryserve/dryserve/core/agentic"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
	"github.com/dryserve/dryserve/core/workload"
)

// ParseBasis finds a basis of nested times by its name.
func ParseBasis(name string) (weka.Basis, bool) {
	switch name {
	case "auto":
		return weka.Auto, true
	case "absolute":
		return weka.Absolute, true
	case "relative":
		return weka.Relative, true
	}
	return weka.Auto, false
}

// objects reads Weka traces: a file of one object, a file of a line for each,
// or a directory of such files.
type objects struct {
	*loader
	parse  trace.Parser
	build  *weka.Builder
	object trace.WekaTrace
	within string // path of the file below the trace's
	count  int    // objects of the file so far
	most   int    // the longest object in bytes
}

// newObjects makes the reader and begins with the file under way.
func newObjects(l *loader) (*objects, error) {
	o := &objects{loader: l, build: weka.NewBuilder(), most: l.opts.MaxLine}
	if o.most == trace.MaxLine {
		o.most = maxObject
	}
	return o, o.begin()
}

// begin begins the file under way.
func (o *objects) begin() error {
	o.within, o.count = path.Base(filepath.ToSlash(o.src.name)), 0
	if o.root != "" {
		o.within = o.relative(o.src.name)
	}
	switch {
	case !single(o.within) && !strings.EqualFold(path.Ext(o.within), ".jsonl"):
		return o.fail(0, "is a trace in the format weka, whose requests are named after their file; want a name that ends in .json (one object) or .jsonl (a line for each), or a directory of such files")
	case o.src.coding != "":
		return o.fail(0, "is compressed with "+o.src.coding+", want a trace in the format weka as plain text")
	case o.src.total < 0:
		return o.fail(0, "is no regular file, want one for a trace in the format weka")
	}
	o.build.File(o.within, o.src.total)
	o.split = trace.NewSplitter(o.most)
	return nil
}

// end ends it.
func (o *objects) end() error {
	switch {
	case o.src.stored.n != o.src.total:
		return o.fail(0, "changed while it was read, want a file that does not")
	case o.count == 0:
		return o.fail(0, "found no object, want at least one")
	}
	return nil
}

// single reports whether a file is one object.
func single(name string) bool { return strings.EqualFold(path.Ext(name), ".json") }

// relative is the path of a file below the trace's directory.
func (l *loader) relative(name string) string {
	below, err := filepath.Rel(l.root, name)
	if err != nil {
		below = name
	}
	return filepath.ToSlash(below)
}

func (o *objects) line(text []byte) error {
	line := o.split.Line()
	name := o.within
	if single(o.within) {
		line = 0
	} else {
		number := strconv.Itoa(o.count)
		name += "#" + strings.Repeat("0", max(0, 6-len(number))) + number
	}
	o.count++
	if f := o.parse.Weka(text, &o.object); f.Code != trace.OK {
		return o.objectFault(f, text, line)
	}
	if f := o.build.Add(&o.object, name, weka.Place{File: int32(len(o.names) - 1), Line: line}); f.Code != weka.OK {
		return o.objectError(f)
	}
	for i := range o.object.Entries {
		if !o.object.Entries[i].Subagent {
			o.info.Rows++
		}
	}
	o.info.Rows-- // for the line itself
	return nil
}

// objectFault words what is wrong with an object by itself. In a file of one
// object it counts lines up to the fault.
func (o *objects) objectFault(f trace.Fault, text []byte, line int64) error {
	where := entry(o.object.Outer, o.object.Inner)
	if f.Code == trace.NotObject || f.Code == trace.ByteOrderMark || f.Code == trace.Trailing {
		where = ""
	}
	if line == 0 {
		line = 1 + int64(bytes.Count(text[:f.Start], []byte("\n")))
		switch f.Code {
		case trace.Trailing:
			return o.fail(line, "found "+found(text[f.Start:])+" after the object, want one object in a file whose name ends in .json; a file of several, a line for each, ends in .jsonl")
		case trace.CutOff:
			return o.fail(line, where+"the file ends too early, want a complete JSON object")
		case trace.Missing:
			return o.fail(line, where+o.lineText(f, text))
		}
		cut := bytes.LastIndexByte(text[:f.Start], '\n') + 1 // columns are those of the line
		f.Start, f.End, f.Key = f.Start-cut, f.End-cut, 0
		text = text[cut:]
	}
	return o.fail(line, where+o.lineText(f, text))
}

// entry says which entry of an object a sentence is about.
func entry(outer, inner int32) string {
	switch {
	case outer < 0:
		return ""
	case inner < 0:
		return "requests[" + strconv.Itoa(int(outer)) + "]: "
	}
	return "requests[" + strconv.Itoa(int(outer)) + "].requests[" + strconv.Itoa(int(inner)) + "]: "
}

func (o *objects) finish() (*workload.Workload, error) {
	if want := int64(o.opts.WantBlockSize); want > 0 && want != o.build.BlockSize() {
		return nil, &Error{File: o.names[0], Text: "the requests were traced with a block size of " + strconv.FormatInt(o.build.BlockSize(), 10) +
			" tokens, but " + strconv.FormatInt(want, 10) + " is asked for (--trace-block-size); want the same, or leave it out"}
	}
	w, f := o.build.Finish(o.opts.NestedBasis, o.opts.ArrivalSpeedup)
	if f.Code != weka.OK {
		return nil, o.objectError(f)
	}
	return w, nil
}

// objectError words what is wrong with an object or with all of them.
func (o *objects) objectError(f weka.Fault) error {
	return &Error{File: o.names[f.At.File], Line: f.At.Line, Text: entry(f.Outer, f.Inner) + objectText(f)}
}

func objectText(f weka.Fault) string {
	n, limit := strconv.FormatInt(f.Found, 10), strconv.FormatInt(f.Limit, 10)
	switch f.Code {
	case weka.Blank:
		return `field "` + f.Field.Name() + `" is blank, want a name`
	case weka.BlockSizeZero:
		return `field "block_size": found 0, want a positive integer`
	case weka.BlockSizeTooLarge:
		return `field "block_size": found ` + n + ", want at most " + limit
	case weka.MixedBlockSizes:
		return `field "block_size": found ` + n + ", but " + limit + " before; want one block size in all of the trace"
	case weka.BadTime:
		return `field "` + f.Field.Name() + `": found ` + strconv.FormatFloat(f.Found64, 'g', -1, 64) + ", want a number of seconds from 0"
	case weka.UndeclaredModel:
		return `field "requests.model": found ` + found(f.Name) + ", want one of those that models lists"
	case weka.InputZero:
		return `field "requests.in": found 0, want a positive integer`
	case weka.TooLong:
		return `field "` + f.Field.Name() + `": found ` + n + ", want at most " + limit
	case weka.NegativeDuration:
		return `field "requests.duration_ms": found ` + n + ", want a whole number of milliseconds from 0"
	case weka.IdleSubagent:
		return "subagent " + found(f.Name) + " was waited for, but has no requests; want at least one, or the status async_launched"
	case weka.Orphan:
		return "subagent " + found(f.Name) + " comes before the first request that could have called it; want that request before it"
	case weka.NoParents:
		return "found no request but those of subagents, want at least one"
	case weka.TooManyRequests:
		return "the trace has more than " + limit + " requests, which is the most"
	case weka.TooManyHashes:
		return "the prompts have more than " + limit + " hashes, which is the most"
	case weka.TooMuchText:
		return "the names have more than " + limit + " bytes together, which is the most"
	case weka.BeforeSubagent:
		return "the request begins at " + strconv.FormatFloat(f.Found64, 'g', -1, 64) + " s, before its subagent at " + strconv.FormatFloat(f.Limit64, 'g', -1, 64) +
			" s; want times that count from the subagent (--weka-nested-timestamp-basis relative), or later ones"
	case weka.TooLate:
		return "the request begins at " + strconv.FormatFloat(f.Found64, 'g', -1, 64) + " s, want less"
	}
	switch f.Graph.Code {
	case agentic.Cycle:
		return "the times let " + strconv.FormatInt(f.Graph.Found, 10) + " requests wait for each other for ever, among them " + found(f.Graph.Name) +
			"; want a subagent to begin after the request before it"
	case agentic.TimeTooLate:
		return "the requests begin too late to be numbers after the speed-up; want a greater speed-up"
	}
	return graphText(f.Graph)
}

// maxObject is the longest object in bytes, where the caller sets no limit.
const maxObject = 1 << 30

// whole reads the rest of the source, whose beginning is text, as one object.
func (l *loader) whole(ctx context.Context, text []byte) error {
	text = slices.Grow(text, int(min(max(l.src.total, 0), maxObject))+1)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(text) > l.objects.most {
			return l.fail(0, "the object is longer than "+strconv.Itoa(l.objects.most)+" bytes; want smaller ones, as lines of a .jsonl file or as files of a directory")
		}
		text = slices.Grow(text, 1)
		at := len(text)
		n, err := l.src.text.Read(text[at:min(cap(text), at+chunk)])
		text = text[:at+n]
		l.count(text[at:])
		if err == io.EOF {
			break
		}
		if err != nil {
			return l.readError(err)
		}
		if l.opts.Progress != nil {
			l.opts.Progress(l.src.stored.n, l.src.total)
		}
	}
	l.info.Lines = l.before.Lines + int64(bytes.Count(text, []byte("\n")))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	l.info.Rows++
	return l.reader.line(text)
}

// directory lists the files of the directory at root, sorted. Links in it are
// refused: they could lead anywhere.
func (l *loader) directory() ([]string, error) {
	var names []string
	err := filepath.WalkDir(l.root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return &Error{File: name, Text: "cannot be read: " + reason(err), Err: err}
		case d.Type()&fs.ModeSymlink != 0:
			return &Error{File: name, Text: "is a symbolic link, want none in the directory of a trace"}
		case !d.IsDir() && (single(name) || strings.EqualFold(filepath.Ext(name), ".jsonl")):
			names = append(names, name)
		}
		return nil
	})
	slices.SortFunc(names, func(x, y string) int { return strings.Compare(l.relative(x), l.relative(y)) })
	if err == nil && len(names) == 0 {
		err = &Error{File: l.root, Text: "is a directory without a file that ends in .json or .jsonl, want a trace file, or a directory of such files in the format weka"}
	}
	return names, err
}

// isDirectory reports whether there is a directory at path.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
