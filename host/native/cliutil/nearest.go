// Package cliutil holds what the command-line programs and the readers and
// writers of their files share about wording: suggestions for misspelt names,
// short quotations of what was found, and the spelling of numbers and texts
// in JSON. It knows nothing about the meaning of any name and does no I/O.
package cliutil

import "strings"

// Nearest returns the known name with the smallest edit distance to word,
// where case does not count and a swap of neighbours is one edit. It reports false when even
// the nearest name differs in more than a third of its length (at least one
// and at most four edits are allowed). Of equally near names the first wins.
func Nearest(word string, known []string) (string, bool) {
	word = strings.ToLower(word)
	best, bestDist := "", -1
	for _, name := range known {
		d := editDistance(word, strings.ToLower(name))
		if d <= allowance(name) && (bestDist < 0 || d < bestDist) {
			best, bestDist = name, d
		}
	}
	return best, bestDist >= 0
}

func allowance(name string) int { return min(max(len(name)/3, 1), 4) }

// editDistance counts byte insertions, deletions, substitutions and swaps of
// neighbours (optimal string alignment).
func editDistance(a, b string) int {
	const tooLong = 256
	if len(a) > tooLong || len(b) > tooLong {
		return tooLong
	}
	before := make([]int, len(b)+1)
	prev := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
