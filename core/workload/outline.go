package workload

// Outline is a workload without prompts, outputs and times, for naming its
// turns and sessions elsewhere than where it was built: ids are those of the
// sessions. It has no use of its own in a run. Nil: an index names nothing, or
// the turns of a session do not follow each other.
func Outline(turns []Turn, sessions []Session, ids [][]byte) *Workload {
	w := &Workload{Turns: turns, Sessions: sessions, BlockSizes: all()}
	if len(ids) != len(sessions) {
		return nil
	}
	for i := range sessions {
		s := &sessions[i]
		name := w.ids.Add(ids[i])
		if name < 0 {
			return nil
		}
		s.name = name + 1
		if s.First < 0 || int(s.First) >= len(turns) || turns[s.First].Index != 0 {
			return nil
		}
	}
	for i := range turns {
		t := &turns[i]
		if t.Session < 0 || int(t.Session) >= len(sessions) || t.Next < -1 || int(t.Next) >= len(turns) {
			return nil
		}
		if t.Next >= 0 && (turns[t.Next].Index != t.Index+1 || turns[t.Next].Session != t.Session) {
			return nil
		}
	}
	return w
}
