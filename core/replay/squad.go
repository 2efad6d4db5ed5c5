package replay

// squad is the crew of one of two pools.
type squad struct{ *pool }

func (q squad) hire(id int32) {
	if m := q.add(); q.pools.sim.answers != nil && external(q.engine) {
		m.g.ShareAnswers(q.pools.sim.answers)
	}
}

func (q squad) join(id int32) {
	q.active = with(q.active, id)
	m := q.members[id]
	m.joined, q.pools.handoffs.joined = true, true
	if m.meter != nil {
		m.meter.begin(q.pools.sim.books.nowMs)
	}
	if q.kv != nil {
		q.kv.enter(id, q.engine)
	}
}

func (q squad) retire(id int32) {
	q.active = without(q.active, id)
	if q.kv != nil {
		q.kv.router.Drain(int(id))
	}
}

func (q squad) dismiss(id int32) {
	m := q.members[id]
	q.gone += m.preemptions()
	q.rest(m)
	q.members[id] = nil
	if q.kv != nil && m.joined {
		q.kv.router.RemoveWorker(int(id))
	}
}

// idle: a source that is held or a destination that is reserved is a request,
// too.
func (q squad) idle(id int32) bool {
	m := q.members[id]
	return !m.flying && m.load == 0
}

func (q squad) meter(id int32) *meter { return q.members[id].meter }

func (q squad) settle() bool {
	if q.kv != nil {
		q.told(q.kv.router.Settle(q.pools.sim.books.nowMs))
	}
	return !q.waits && !q.pools.sim.dead
}

func (q squad) waiting() int { return q.kv.waiting() }

// gauge notes how a rank is after a command.
func (m *member) gauge(rank int32) {
	if m.meter != nil {
		m.meter.told(int(rank), m.g.Metrics(int(rank)))
	}
}
