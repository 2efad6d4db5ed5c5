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
	"github.com/dryserve/dryserve/core/intake"
	"github.com/dryserve/dryserve/core/trace"
	"github.com/dryserve/dryserve/core/weka"
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

// beginObjects begins a file of a Weka trace and returns its path below the
// trace's. It says which files such a trace has.
func (l *loader) beginObjects() (within string, err error) {
	within = path.Base(filepath.ToSlash(l.src.name))
	if l.root != "" {
		within = l.relative(l.src.name)
	}
	switch {
	case !intake.Single(within) && !strings.EqualFold(path.Ext(within), ".jsonl"):
		err = l.fail(0, "is a trace in the format weka, whose requests are named after their file; want a name that ends in .json (one object) or .jsonl (a line for each), or a directory of such files")
	case l.src.coding != "":
		err = l.fail(0, "is compressed with "+l.src.coding+", want a trace in the format weka as plain text")
	case l.src.total < 0:
		err = l.fail(0, "is no regular file, want one for a trace in the format weka")
	}
	return within, err
}

// relative is the path of a file below the trace's directory.
func (l *loader) relative(name string) string {
	below, err := filepath.Rel(l.root, name)
	if err != nil {
		below = name
	}
	return filepath.ToSlash(below)
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

// objectText words what is wrong with an object or with all of them.
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

// whole reads the rest of the source, whose beginning is text, as one object.
func (l *loader) whole(ctx context.Context, text []byte, read *intake.Reader) error {
	text = slices.Grow(text, int(min(max(l.src.total, 0), int64(read.MaxLine())))+1)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if most := read.MaxLine(); len(text) > most {
			return l.sentence(&intake.Finding{Kind: intake.ByTrace, Code: intake.ObjectTooLong, File: int32(len(l.names) - 1), Limit: int64(most)})
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
	if trace.Blank(text) {
		return nil
	}
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
		case !d.IsDir() && (intake.Single(name) || strings.EqualFold(filepath.Ext(name), ".jsonl")):
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
