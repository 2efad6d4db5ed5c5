package live

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/dryserve/dryserve/host/native/live/card"
	"github.com/dryserve/dryserve/host/native/live/discovery"
	"github.com/dryserve/dryserve/host/native/live/plane"
	"github.com/dryserve/dryserve/host/native/live/wire"
)

// floorRecords is how many records the instant worker writes: its card and its
// endpoint.
const floorRecords = 2

// Floor is a worker that answers at once, until ctx ends or its records cannot be
// renewed. It has no engine, no cache and no events.
func Floor(ctx context.Context, root, model string) error {
	s, err := plane.Listen("127.0.0.1:0", "", slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	e := card.Endpoint{Namespace: "dynamo", Component: "backend", Name: "generate", Instance: 1}
	text, err := card.Model{Name: modelName, Path: model, BlockSize: 64, Blocks: 16384, MaxSeqs: 256, MaxTokens: 8192, Ranks: 1}.Card()
	if err != nil {
		return err
	}
	if err := s.Handle(e, instantly); err != nil {
		return err
	}
	go s.Serve()
	defer s.Close()
	renew := time.NewTicker(3 * time.Second)
	defer renew.Stop()
	files := map[string][]byte{
		filepath.Join(root, discovery.Cards, discovery.FileName(e.Key())):     e.CardRecord(text),
		filepath.Join(root, discovery.Instances, discovery.FileName(e.Key())): e.Record(s.Transport()),
	}
	for {
		for path, text := range files {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			temporary := filepath.Join(filepath.Dir(path), ".tmp_floor")
			if err := os.WriteFile(temporary, text, 0o600); err != nil {
				return err
			}
			if err := os.Rename(temporary, path); err != nil {
				return err
			}
		}
		select {
		case <-renew.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// instantly says all tokens in one piece.
func instantly(_ context.Context, c wire.Control, body []byte, to *plane.Stream) bool {
	p, err := wire.DecodePreprocessed(c.Codec, body)
	if err != nil || p.MaxTokens == nil {
		to.Invalid("a request with max_tokens is accepted", "a request with max_tokens is accepted")
		return true
	}
	n := int(*p.MaxTokens)
	for i := range n {
		to.Output(wire.Output{Token: uint32(1000 + i%1000), HasToken: true})
	}
	to.Output(wire.Output{Finish: "length", Usage: &wire.Usage{Prompt: len(p.TokenIDs), Answer: n}})
	return true
}
