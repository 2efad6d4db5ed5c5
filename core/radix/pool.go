package radix

// Page is a page of KV: a number from 1; 0 is none.
type Page int32

// pool says which pages are free: those of the stack, which somebody had
// before, and those above given, which nobody had yet.
type pool struct {
	total int
	given int    // pages that were ever given out
	stack []Page // freed ones
}

func (p *pool) available() int { return p.total - p.given + len(p.stack) }

// allocate appends n pages to list: those freed last, in the order in which
// they were freed, then new ones. There are that many.
func (p *pool) allocate(list []Page, n int) []Page {
	k := min(n, len(p.stack))
	cut := len(p.stack) - k
	list = append(list, p.stack[cut:]...)
	p.stack = p.stack[:cut]
	for range n - k {
		p.given++
		list = append(list, Page(p.given))
	}
	return list
}

func (p *pool) free(page Page) { p.stack = append(p.stack, page) }
