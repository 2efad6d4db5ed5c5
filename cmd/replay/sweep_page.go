package main

import (
	"path/filepath"
	"strings"

	"github.com/dryserve/dryserve/host/native/picture"
	"github.com/dryserve/dryserve/host/native/sweep"
)

// page is the page of a sweep.
func (p *plan) page(t *sweep.Table, v sweep.View) *picture.Document {
	file := picture.PairGroup{Title: "Of all points"}
	for _, path := range p.file.Traces {
		file.Pairs = append(file.Pairs, [2]string{"trace", path})
	}
	for _, s := range p.file.Settings {
		file.Pairs = append(file.Pairs, [2]string{s.Name, strings.Join(strings.Fields(s.Text), " ")})
	}
	groups := []picture.PairGroup{file}
	for _, axes := range p.file.Grids {
		g := picture.PairGroup{Title: "In turn"}
		for i := range axes {
			a := &axes[i]
			var values []string
			for _, v := range a.Values {
				values = append(values, sweep.SettingsOf([]sweep.Choice{{Axis: a, Value: v}})[0].Text())
			}
			g.Pairs = append(g.Pairs, [2]string{a.Name(), strings.Join(values, ", ")})
		}
		groups = append(groups, g)
	}
	return t.Page(filepath.Base(p.file.Path), v, groups)
}
