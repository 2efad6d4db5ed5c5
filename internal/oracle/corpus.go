package oracle

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"

	"github.com/dryserve/dryserve/internal/gen"
)

// WriteCorpus asks the reference for the cases of c's seeds, one after the
// other, and writes those with an answer to w as gzipped JSON lines. A corpus
// lets `go test` compare without the reference.
func (c *Campaign) WriteCorpus(w io.Writer) (Tally, error) {
	var tally Tally
	zip, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return tally, err
	}
	enc := json.NewEncoder(zip)
	err = c.work(func(p *pair) error {
		for i := range c.Cases {
			kase, err := gen.FamilyCase(c.Seed+uint64(i), c.Family)
			if err != nil {
				return err
			}
			answer, _, err := p.ask(kase)
			if err != nil {
				return err
			}
			tally.Cases++
			tally.ByOutcome[answer.Outcome]++
			recorded, err := NewRecorded(kase, answer)
			if err != nil {
				fmt.Fprintln(c.Log, "left out:", err)
				continue
			}
			if err := enc.Encode(recorded); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return tally, err
	}
	return tally, zip.Close()
}

// ReadCorpus hands each recorded case of a corpus to visit.
func ReadCorpus(r io.Reader, visit func(*Recorded) error) error {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return err
	}
	defer zip.Close()
	for dec := json.NewDecoder(zip); ; {
		var recorded Recorded
		switch err := dec.Decode(&recorded); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
		if err := visit(&recorded); err != nil {
			return err
		}
	}
}
