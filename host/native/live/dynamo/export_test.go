package dynamo

// Heard reports whether anybody hears what a rank's cache holds in vLLM's words.
func (s *Site) Heard(worker, rank int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.workers[worker].natives[rank].Wanted()
}
