// @ts-check
// A recording reduced, part by part, to totals, bins of time, the passes of each
// rank and the steps of each request, as the command line's pages reduce it
// (host/native/picture): the numbers are the same.

import { Growing } from './growing.js';
import { Sketch } from './sketch.js';
import { floats, ints } from './msgpack.js';

/** @typedef {import('./fleet.js').Fleet} Fleet */
/** @typedef {import('./msgpack.js').Pairs} Pairs */

/**
 * Bins of time: their width is made 2 and 5 times as large in turn until the run
 * fits into so many. A line joins bins to points.
 */
const MOST_BINS = 500;
const MOST_POINTS = 160;
const FIRST_WIDTH_MS = 1;
/** Passes that are kept of all ranks together. */
const MOST_PASSES = 400_000;
/** Steps of requests that are kept. */
const MOST_STEPS = 4_000_000;

/** Kinds of steps. */
export const Step = Object.freeze({ Arrived: 0, Admitted: 1, Preempted: 2, Held: 3, Transferring: 4, Activated: 5, FirstToken: 6, Ended: 7 });

/** Columns of passes after their times, in the order in which they are read. */
const PASS_COUNTS = ['worker', 'rank', 'pool', 'prefills', 'prefill_tokens', 'decodes', 'tokens', 'running', 'waiting', 'active_blocks', 'cached_blocks'];

/** As what a request is counted. */
const WAITS = 0;
const RUNS = 1;
const HANDED = 2;

/** What happened in a stretch of time; areas are requests times ms. */
export class Bin {
  arrived = 0;
  completed = 0;
  lost = 0;
  preempted = 0;
  tokens = 0;
  prefilled = 0;
  input = 0;
  reused = 0;
  host = 0;
  waitArea = 0;
  runArea = 0;
  handArea = 0;
  waitMost = 0;
  ttft = new Sketch();
  itl = new Sketch();

  /** @param {Bin} o */
  join(o) {
    for (const key of SUMS) this[key] += o[key];
    this.waitMost = Math.max(this.waitMost, o.waitMost);
    this.ttft.merge(o.ttft);
    this.itl.merge(o.itl);
  }
}
const SUMS = /** @type {const} */ (['arrived', 'completed', 'lost', 'preempted', 'tokens', 'prefilled', 'input', 'reused', 'host', 'waitArea', 'runArea', 'handArea']);

/** Totals of a rank, and how it stands since its last pass. */
class Rank {
  passes = 0;
  requests = 0;
  tokens = 0;
  prefilled = 0;
  preempted = 0;
  busyMs = 0;
  input = 0;
  reused = 0;
  runMost = 0;
  waitMost = 0;
  activeMost = 0;
  sinceMs = 0;
  active = 0;
  cached = 0;
  running = 0;
  waiting = 0;
  /** By bin, times ms; the last is the highest of active. @type {number[][]} */
  areas = [[], [], [], [], []];
  kept = new Growing(['startMs', 'endMs'], ['prefills', 'prefillTokens', 'decodes', 'tokens', 'running', 'waiting', 'active', 'cached']);

  /** Makes bin i be there. @param {number} i */
  room(i) {
    if (this.areas[ACTIVE].length <= i) for (const a of this.areas) while (a.length <= i) a.push(0);
    return i;
  }

  /** Counts how it stands for a time within bin i. @param {number} i @param {number} ms */
  hold(i, ms) {
    this.room(i);
    const [active, cached, running, waiting, most] = this.areas;
    active[i] += this.active * ms;
    cached[i] += this.cached * ms;
    running[i] += this.running * ms;
    waiting[i] += this.waiting * ms;
    if (this.active > most[i]) most[i] = this.active;
  }

  /** @param {number} k */
  widen(k) {
    this.areas = this.areas.map((a, which) => {
      const out = new Array(Math.ceil(a.length / k)).fill(0);
      a.forEach((x, i) => {
        const to = Math.floor(i / k);
        out[to] = which === MOST ? Math.max(out[to], x) : out[to] + x;
      });
      return out;
    });
  }
}
export const ACTIVE = 0;
export const CACHED = 1;
export const RUNNING = 2;
export const WAITING = 3;
export const MOST = 4;

export class Collector {
  /** @param {Fleet} fleet @param {Int32Array} inputs prompt tokens by turn */
  constructor(fleet, inputs) {
    this.fleet = fleet;
    this.inputs = inputs;
    this.widthMs = FIRST_WIDTH_MS;
    this.widened = 0;
    /** @type {Bin[]} */
    this.bins = [];
    this.endMs = 0;
    this.nowMs = 0; // up to which waiting and running are counted
    this.counts = [0, 0, 0];
    this.arriveMs = new Float64Array(inputs.length);
    this.state = new Uint8Array(inputs.length);
    this.admitted = new Uint8Array(inputs.length);
    this.ttft = new Sketch();
    this.itl = new Sketch();
    this.e2e = new Sketch();
    this.waitMost = 0;
    this.preempted = 0;
    this.lost = 0;
    this.ranks = Array.from({ length: fleet.ranks }, () => new Rank());
    this.keptPasses = 0;
    this.keptUntilMs = Infinity;
    this.steps = new Growing(['atMs'], ['turn', 'kind', 'rank', 'tokens', 'hostTokens'], MOST_STEPS);
  }

  /** Takes the next part: an answer of TakeRecording. @param {Pairs} part */
  add(part) {
    this.addEvents(part);
    this.addPasses(part);
    const [at, ms, n] = [floats(part['gap.at_ms']), floats(part['gap.ms']), ints(part['gap.n'])];
    for (let i = 0; i < at.length; i++) {
      this.itl.add(ms[i], n[i]);
      this.at(at[i]).itl.add(ms[i], n[i]);
    }
  }

  /** The run is over: what holds now holds until the last moment seen. */
  finish() {
    this.reach(this.endMs);
    this.ranks.forEach((r) => this.hold(r, this.endMs));
  }

  /** The bin of a moment. @param {number} ms */
  at(ms) {
    this.endMs = Math.max(this.endMs, ms);
    while (ms >= MOST_BINS * this.widthMs) this.widen();
    const i = Math.trunc(ms / this.widthMs);
    while (this.bins.length <= i) this.bins.push(new Bin());
    return this.bins[i];
  }

  widen() {
    const k = 2 + 3 * (this.widened++ % 2);
    this.widthMs *= k;
    this.bins = joinedBins(this.bins, k);
    this.ranks.forEach((r) => r.widen(k));
  }

  /** Counts those who wait and run up to a moment. @param {number} ms */
  reach(ms) {
    const [waiting, running, handed] = this.counts;
    this.at(ms);
    for (let [i, fromMs] = [Math.trunc(this.nowMs / this.widthMs), this.nowMs]; fromMs < ms; i++) {
      const endMs = Math.min(ms, (i + 1) * this.widthMs);
      const b = this.bins[i];
      b.waitArea += waiting * (endMs - fromMs);
      b.runArea += running * (endMs - fromMs);
      b.handArea += handed * (endMs - fromMs);
      b.waitMost = Math.max(b.waitMost, waiting);
      this.waitMost = Math.max(this.waitMost, waiting);
      fromMs = endMs;
    }
    this.nowMs = Math.max(this.nowMs, ms);
  }

  /** @param {Pairs} part */
  addEvents(part) {
    const at = floats(part['event.at_ms']);
    const [turn, worker, rank, pool, kind, status, tokens, host] = ['turn', 'worker', 'rank', 'pool', 'kind', 'status', 'tokens', 'host_tokens'].map((k) => ints(part[`event.${k}`]));
    for (let i = 0; i < at.length; i++) {
      const id = this.fleet.rank(pool[i], worker[i], rank[i]);
      this.event(kind[i], turn[i], at[i], id, status[i], tokens[i], host[i]);
      this.steps.push(at[i], turn[i], kind[i], id, tokens[i], host[i]);
    }
  }

  /** @param {number} kind @param {number} turn @param {number} atMs @param {number} id of the rank @param {number} status @param {number} tokens @param {number} host */
  event(kind, turn, atMs, id, status, tokens, host) {
    this.reach(atMs);
    const b = this.at(atMs);
    const rank = this.ranks[id];
    switch (kind) {
      case Step.Arrived:
        this.arriveMs[turn] = atMs;
        this.state[turn] = WAITS;
        b.arrived++;
        this.counts[WAITS]++;
        break;
      case Step.Admitted:
        this.move(turn, RUNS);
        if (this.admitted[turn] === 0) this.firstAdmission(turn, b, rank, tokens, host);
        break;
      case Step.Preempted:
        this.move(turn, WAITS);
        b.preempted++;
        this.preempted++;
        rank.preempted++;
        break;
      case Step.Held:
        this.move(turn, HANDED);
        rank.requests++;
        break;
      case Step.Activated:
        this.move(turn, WAITS);
        break;
      case Step.FirstToken: {
        const ms = atMs - this.arriveMs[turn];
        this.ttft.add(ms, 1);
        this.at(this.arriveMs[turn]).ttft.add(ms, 1);
        break;
      }
      case Step.Ended:
        this.counts[this.state[turn]]--;
        if (status !== 0) {
          b.lost++;
          this.lost++;
        } else {
          b.completed++;
          rank.requests++;
          if (tokens > 0) this.e2e.add(atMs - this.arriveMs[turn], 1);
        }
    }
  }

  /** @param {number} turn @param {Bin} b @param {Rank} rank @param {number} tokens @param {number} host */
  firstAdmission(turn, b, rank, tokens, host) {
    this.admitted[turn] = 1;
    const input = this.inputs[turn];
    b.input += input;
    b.reused += tokens;
    b.host += host;
    rank.input += input;
    rank.reused += tokens;
  }

  /** Counts a request elsewhere. @param {number} turn @param {number} to */
  move(turn, to) {
    this.counts[this.state[turn]]--;
    this.state[turn] = to;
    this.counts[to]++;
  }

  /** @param {Pairs} part */
  addPasses(part) {
    const [start, end, own] = ['start_ms', 'end_ms', 'own_end_ms'].map((k) => floats(part[`pass.${k}`]));
    const [worker, rank, pool, prefills, prefillTokens, decodes, tokens, running, waiting, active, cached] = PASS_COUNTS.map((k) => ints(part[`pass.${k}`]));
    for (let i = 0; i < start.length; i++) {
      const r = this.ranks[this.fleet.rank(pool[i], worker[i], rank[i])];
      this.hold(r, end[i]);
      const b = this.at(end[i]);
      b.tokens += tokens[i];
      b.prefilled += prefillTokens[i];
      if (prefills[i] + decodes[i] > 0) r.passes++;
      r.tokens += tokens[i];
      r.prefilled += prefillTokens[i];
      r.busyMs += own[i] - start[i];
      r.runMost = Math.max(r.runMost, running[i]);
      r.waitMost = Math.max(r.waitMost, waiting[i]);
      r.active = active[i];
      r.cached = cached[i];
      r.running = running[i];
      r.waiting = waiting[i];
      r.activeMost = Math.max(r.activeMost, active[i]);
      const at = r.room(Math.trunc(end[i] / this.widthMs));
      r.areas[MOST][at] = Math.max(r.areas[MOST][at], active[i]);
      if (this.keptPasses < MOST_PASSES) {
        r.kept.push(start[i], own[i], prefills[i], prefillTokens[i], decodes[i], tokens[i], running[i], waiting[i], active[i], cached[i]);
        this.keptPasses++;
      } else {
        this.keptUntilMs = Math.min(this.keptUntilMs, start[i]);
      }
    }
  }

  /** Counts how a rank stands from its last pass to a moment. @param {Rank} r @param {number} ms */
  hold(r, ms) {
    if (r.active + r.cached + r.running + r.waiting > 0 && ms > r.sinceMs) {
      this.at(ms);
      for (let [i, fromMs] = [Math.trunc(r.sinceMs / this.widthMs), r.sinceMs]; fromMs < ms; i++) {
        const endMs = Math.min(ms, (i + 1) * this.widthMs);
        r.hold(i, endMs - fromMs);
        fromMs = endMs;
      }
    }
    r.sinceMs = Math.max(r.sinceMs, ms);
  }

  /** How many bins a point of a line joins. */
  get every() {
    return joining(this.bins.length, MOST_POINTS);
  }

  /** Bins joined for lines. */
  points() {
    return joinedBins(this.bins, this.every);
  }
}

/** How many of n are joined so that at most so many are left. @param {number} n @param {number} most */
export const joining = (n, most) => Math.max(Math.ceil(n / most), 1);

/** @param {Bin[]} bins @param {number} k */
function joinedBins(bins, k) {
  /** @type {Bin[]} */
  const out = [];
  bins.forEach((b, i) => {
    if (i % k === 0) out.push(new Bin());
    out[out.length - 1].join(b);
  });
  return out;
}
