// @ts-check
// What a page shows of a recording: lines over time, distributions, ranks, the
// passes of each, and the steps of the slowest requests.

import { ACTIVE, CACHED, MOST, RUNNING, WAITING, joining } from './collect.js';
import { latencies } from './report.js';

/** @typedef {import('./collect.js').Collector} Collector */
/** @typedef {import('./collect.js').Bin} Bin */
/** @typedef {import('./fleet.js').Pool} Pool */
/** @typedef {import('./types.d.ts').Recording} Recording */
/** @typedef {import('./types.d.ts').Records} Records */
/** @typedef {import('./types.d.ts').Story} Story */

/** Cells that a map has at most before its columns are joined. */
const MOST_CELLS = 200_000;
/** Requests that are told of, by each latency. */
const MOST_STORIES = 12;

const STEP_WORDS = /** @type {const} */ (['arrived', 'admitted', 'preempted', 'held', 'transferring', 'activated', 'first_token', 'ended']);

/** Fractions of distributions: each half per cent, and each tenth above 99 %. */
const FRACTIONS = Float64Array.from([...Array.from({ length: 199 }, (_, i) => i / 200), ...Array.from({ length: 11 }, (_, i) => (990 + i) / 1000)]);

/**
 * @param {Collector} c finished
 * @param {Records} records
 * @param {{tiers: boolean}} has
 * @returns {Recording}
 */
export function recordingOf(c, records, has) {
  const points = c.points();
  return {
    stepMs: c.widthMs * c.every, n: points.length, endMs: c.endMs, lines: lines(c, points, has),
    at: FRACTIONS.slice(), quantiles: { ttft: c.ttft.quantiles(FRACTIONS), itl: c.itl.quantiles(FRACTIONS), e2e: c.e2e.quantiles(FRACTIONS) },
    pools: c.fleet.pools.map((p) => ({ name: p.word.trim(), blocks: p.blocks, first: p.first, ranks: p.workers * p.ranks, lines: usage(c, p, points.length) })),
    ranks: loads(c), map: map(c), inside: totals(c), passes: passes(c), stories: stories(c, records),
  };
}

/** @param {Collector} c @param {Bin[]} points @param {{tiers: boolean}} has */
function lines(c, points, has) {
  const pointMs = c.widthMs * c.every;
  const line = (/** @type {(b: Bin, i: number) => number} */ f) => Float64Array.from(points, f);
  const rate = (/** @type {'tokens' | 'prefilled' | 'arrived' | 'completed' | 'lost'} */ key) => line((b) => (b[key] / pointMs) * 1000);
  const mean = (/** @type {'runArea' | 'waitArea' | 'handArea'} */ key) => line((b, i) => averaged(c, i, b[key]));
  const at = (/** @type {number[]} */ fractions, /** @type {'ttft' | 'itl'} */ of) => {
    const all = points.map((b) => b[of].quantiles(fractions));
    return fractions.map((_, k) => Float64Array.from(all, (q) => q[k]));
  };
  const share = (/** @type {number} */ part, /** @type {number} */ whole) => (whole === 0 ? NaN : part / whole);
  const [ttft50, ttft90, ttftMax] = at([0.5, 0.9, 1], 'ttft');
  const [itl50, itl90, itl99] = at([0.5, 0.9, 0.99], 'itl');
  let [reused, input] = [0, 0];
  /** @type {Record<string, Float64Array>} */
  const all = {
    ttft50, ttft90, ttftMax, itl50, itl90, itl99, output: rate('tokens'), prefill: rate('prefilled'), arrived: rate('arrived'), completed: rate('completed'),
    running: mean('runArea'), waiting: mean('waitArea'), waitingMost: line((b) => b.waitMost), hits: line((b) => share(b.reused, b.input)),
    hitsSoFar: line((b) => {
      reused += b.reused;
      input += b.input;
      return share(reused, input);
    }),
  };
  if (c.lost > 0) all.lost = rate('lost');
  if (c.fleet.pools.length > 1) all.handed = mean('handArea');
  else if (c.preempted > 0) all.preempted = line((b) => b.preempted);
  if (has.tiers) all.hitsHost = line((b) => share(b.host, b.input));
  return all;
}

/** What an area over a point is on average, as far as the run covers it; NaN if it ends as the point begins. @param {Collector} c @param {number} i @param {number} area */
function averaged(c, i, area) {
  const pointMs = c.widthMs * c.every;
  const ms = Math.min(pointMs, c.endMs - i * pointMs);
  return ms > 0 ? area / ms : NaN;
}

/** What the blocks of a rank were used for in so many bins from i on. @param {Collector} c @param {number} id @param {number} i @param {number} bins */
function useOf(c, id, i, bins) {
  const areas = c.ranks[id].areas;
  const u = { active: 0, cached: 0, running: 0, waiting: 0, most: 0, ms: 0 };
  for (let j = i; j < Math.min(i + bins, c.bins.length); j++) {
    u.ms += Math.min(c.widthMs, c.endMs - j * c.widthMs);
    if (j >= areas[ACTIVE].length) continue;
    u.active += areas[ACTIVE][j];
    u.cached += areas[CACHED][j];
    u.running += areas[RUNNING][j];
    u.waiting += areas[WAITING][j];
    u.most = Math.max(u.most, areas[MOST][j]);
  }
  return u;
}

/** Shares of a pool's blocks over time: in use, in use or cached, the peak of any rank. @param {Collector} c @param {Pool} p @param {number} n points */
function usage(c, p, n) {
  const ranks = p.workers * p.ranks;
  const all = p.blocks * ranks;
  const [used, cached, most] = [new Float64Array(n), new Float64Array(n), new Float64Array(n)];
  for (let i = 0; i < n; i++) {
    let [active, either] = [0, 0];
    for (let id = p.first; id < p.first + ranks; id++) {
      const u = useOf(c, id, i * c.every, c.every);
      active += u.active;
      either += u.active + u.cached;
      most[i] = Math.max(most[i], u.most / p.blocks);
    }
    used[i] = averaged(c, i, active) / all;
    cached[i] = averaged(c, i, either) / all;
  }
  return { used, cached, most };
}

/** @param {Collector} c */
function loads(c) {
  return c.ranks.map((r, id) => {
    const p = c.fleet.pool(id);
    const area = r.areas[ACTIVE].reduce((sum, a) => sum + a, 0);
    return {
      name: c.fleet.name(id), pool: p.word.trim(), requests: r.requests, busy: c.endMs === 0 ? 0 : r.busyMs / c.endMs, prefilled: r.prefilled, tokens: r.tokens,
      hits: r.input === 0 ? 0 : r.reused / r.input, kvMean: c.endMs === 0 ? 0 : area / (c.endMs * p.blocks), kvMost: r.activeMost / p.blocks,
      runningMost: r.runMost, waitingMost: r.waitMost, preemptions: r.preempted, passes: r.passes,
    };
  });
}

/** Each rank over time: share of blocks in use, running, waiting. @param {Collector} c */
function map(c) {
  const rows = c.fleet.ranks;
  const step = joining(c.bins.length, Math.max(Math.floor(MOST_CELLS / Math.max(rows, 1)), 50));
  const n = Math.ceil(c.bins.length / step);
  const [kv, running, waiting] = [new Float32Array(rows * n), new Float32Array(rows * n), new Float32Array(rows * n)];
  for (let id = 0; id < rows; id++) {
    for (let k = 0; k < n; k++) {
      const u = useOf(c, id, k * step, step);
      const at = id * n + k;
      kv[at] = u.active / (u.ms * c.fleet.pool(id).blocks);
      running[at] = u.running / u.ms;
      waiting[at] = u.waiting / u.ms;
    }
  }
  return { stepMs: c.widthMs * step, n, kv, running, waiting };
}

/** @param {Collector} c */
function totals(c) {
  let [all, kvMean, kvMost] = [0, 0, 0];
  c.ranks.forEach((r, id) => {
    const blocks = c.fleet.pool(id).blocks;
    all += blocks;
    for (const a of r.areas[ACTIVE]) kvMean += a;
    kvMost = Math.max(kvMost, r.activeMost / blocks);
  });
  return { kvMean: c.endMs > 0 ? kvMean / (c.endMs * all) : kvMean, kvMost, waitingMost: c.waitMost, preemptions: c.preempted };
}

/** @param {Collector} c */
function passes(c) {
  return { untilMs: c.keptUntilMs, of: c.ranks.map((r) => /** @type {import('./types.d.ts').Passes} */ (/** @type {unknown} */ (r.kept.cut()))) };
}

/** The slowest requests by each latency, with what happened to them. @param {Collector} c @param {Records} records @returns {Record<'ttft' | 'itl' | 'e2e', Story[]>} */
function stories(c, records) {
  const rows = Array.from(records.turn.keys());
  const all = rows.map((i) => latencies(records, i));
  const slowest = (/** @type {'ttft_ms' | 'itl_ms' | 'e2e_latency_ms'} */ key) =>
    rows.filter((i) => Number.isFinite(all[i][key])).sort((i, j) => all[j][key] - all[i][key] || i - j).slice(0, MOST_STORIES);
  const chosen = { ttft: slowest('ttft_ms'), itl: slowest('itl_ms'), e2e: slowest('e2e_latency_ms') };
  /** @type {Map<number, Story>} */
  const byTurn = new Map();
  for (const i of new Set([...chosen.ttft, ...chosen.itl, ...chosen.e2e])) byTurn.set(records.turn[i], { record: i, turn: records.turn[i], whole: !c.steps.full, steps: [] });
  const { atMs, turn, kind, rank, tokens, hostTokens } = c.steps.cut();
  for (let s = 0; s < c.steps.n; s++) {
    byTurn.get(turn[s])?.steps.push({ kind: STEP_WORDS[kind[s]], atMs: atMs[s], rank: rank[s], tokens: tokens[s], hostTokens: hostTokens[s] });
  }
  const told = (/** @type {number[]} */ list) => list.map((i) => /** @type {Story} */ (byTurn.get(records.turn[i])));
  return { ttft: told(chosen.ttft), itl: told(chosen.itl), e2e: told(chosen.e2e) };
}

