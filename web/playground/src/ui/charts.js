// The figures of one run, and of two beside each other, from what was recorded.

import { make, spell, spellShare } from "./dom.js";
import { heat } from "./heat.js";
import { plot, table } from "./plot.js";

/**
 * @typedef {import("../core/types.d.ts").Recording} Charts
 * @typedef {{ttft: number | null, itl: number | null, e2e: number | null}} Goals
 * @typedef {import("./plot.js").Figure} Figure
 */

/** The time of each point: its middle. @param {Charts} c */
function times(c) {
  return Float64Array.from({ length: c.n }, (_, i) => Math.min((i + 0.5) * c.stepMs, (i * c.stepMs + c.endMs) / 2));
}

/** @param {string} name @param {number | null} value */
const goal = (name, value) => (value === null ? [] : [{ name, value }]);

/** @param {Charts} c @param {Goals} goals @returns {Figure} */
function distributions(c, goals) {
  const { x, ys } = joined([c.quantiles.ttft, c.quantiles.itl, c.quantiles.e2e], c.at);
  return {
    id: "latency-cdf", title: "Latency distributions", about: "Share of tokens or requests with at most this latency.", along: "latency", unit: "share", x,
    lines: ["TTFT", "ITL", "Request latency"].map((name, i) => ({ name, y: ys[i] })),
    goals: [...goal("TTFT goal", goals.ttft), ...goal("ITL goal", goals.itl), ...goal("E2E goal", goals.e2e)],
  };
}

/** Curves given by their quantiles, as shares at latencies that all have in common. @param {Float64Array[]} curves @param {Float64Array} at @returns {{x: Float64Array, ys: Float64Array[]}} */
export function joined(curves, at) {
  const all = curves.flatMap((c) => Array.from(c)).filter((v) => v > 0).sort((a, b) => a - b);
  const x = Float64Array.from(all.filter((v, i) => i === 0 || v > all[i - 1] * 1.0005));
  const ys = curves.map((q) => {
    let k = 0;
    return x.map((v) => {
      if (q.length === 0 || !Number.isFinite(q[0])) return NaN;
      while (k < q.length && q[k] <= v) k++;
      if (k === 0) return 0;
      if (k === q.length) return 1;
      return q[k] > q[k - 1] ? at[k - 1] + ((at[k] - at[k - 1]) * (v - q[k - 1])) / (q[k] - q[k - 1]) : at[k];
    });
  });
  return { x, ys };
}

/** All figures over time of one run. @param {Charts} c @param {Goals} goals @returns {HTMLElement[]} */
export function figures(c, goals) {
  const x = times(c);
  const l = c.lines;
  /** @type {(id: string, title: string, about: string, unit: string, lines: [string, Float64Array | undefined, boolean?][], goals?: import("./plot.js").Goal[]) => HTMLElement} */
  const over = (id, title, about, unit, lines, marks = []) =>
    plot({ id, title, about, along: "time", unit, x, goals: marks, lines: lines.flatMap(([name, y, area]) => (y ? [{ name, y, area: area ?? false }] : [])) });
  const list = [
    plot(distributions(c, goals)),
    over("ttft-over-time", "TTFT over time", "By the time a request arrived.", "ms", [["p50", l.ttft50], ["p90", l.ttft90], ["max", l.ttftMax]], goal("goal", goals.ttft)),
    over("itl-over-time", "ITL over time", "By the time a token was given out.", "ms", [["p50", l.itl50], ["p90", l.itl90], ["p99", l.itl99]], goal("goal", goals.itl)),
    over("output-throughput", "Output tokens per second", "Of all workers.", "tokens/s", [["output", l.output, true]]),
    over("queue-depth", "Requests in the system", "On all workers; those that wait are new or were preempted.", "requests", [["running", l.running], ["waiting", l.waiting], ["waiting, peak", l.waitingMost], ["handed over", l.handed], ["preemptions", l.preempted]]),
    over("request-rate", "Requests per second", "Where arrivals stay above completions, the queue grows.", "/s", [["arrived", l.arrived], ["completed", l.completed], ["rejected or failed", l.lost]]),
    over("cache-hits", "Prefix hits", "Share of prompt tokens found in the cache at first admission.", "share", [["at this time", l.hits], ["so far", l.hitsSoFar], ["from host memory", l.hitsHost]]),
    over("prefill-throughput", "Prompt tokens computed per second", "Those found in the cache are not among them.", "tokens/s", [["prompt tokens", l.prefill, true]]),
  ];
  for (const p of c.pools) {
    const of = p.name ? `, ${p.name} workers` : "";
    list.push(over(`kv-usage${p.name ? `-${p.name}` : ""}`, `KV cache${of}`, `Share of all blocks; the peak is that of any worker.`, "share", [["in use", p.lines.used], ["in use or cached", p.lines.cached], ["in use, peak", p.lines.most]]));
  }
  if (list.length % 2 === 1) list[list.length - 1].classList.add("wide");
  if (c.ranks.length > 0) list.push(workers(c), loads(c));
  return list;
}

/** @param {Charts} c */
function loads(c) {
  const head = ["Worker", "requests", "busy", "passes", "prompt tokens", "output tokens", "prefix hits", "KV, mean", "KV, peak", "running, peak", "waiting, peak", "preemptions"];
  const body = c.ranks.map((r) => [r.name, spell(r.requests), spellShare(r.busy), spell(r.passes), spell(r.prefilled), spell(r.tokens), spellShare(r.hits), spellShare(r.kvMean), spellShare(r.kvMost), spell(r.runningMost), spell(r.waitingMost), spell(r.preemptions)]);
  return make("details", { class: "sheet wide numbers", id: "loads" }, make("summary", {}, "Load by worker"), table("Load by worker", head, body));
}

/** @param {Charts} c */
function workers(c) {
  const { kv, running, waiting, n, stepMs } = c.map;
  /** @param {Float32Array} of */
  const cell = (of) => (/** @type {number} */ r, /** @type {number} */ i) => of[r * n + i];
  return heat({
    id: "by-worker", title: "By worker", about: "A row for each worker and rank, as they stand at the end of their passes.", rows: c.ranks.map((r) => r.name), n, stepMs, endMs: c.endMs,
    measures: [
      { id: "kv", label: "KV blocks in use", at: cell(kv), spell: spellShare, top: 1 },
      { id: "running", label: "Running requests", at: cell(running), spell },
      { id: "waiting", label: "Waiting requests", at: cell(waiting), spell },
    ],
  });
}

/** Figures of two runs, one line each. @param {Charts} a @param {Charts} b @param {Goals} goals @returns {HTMLElement[]} */
export function both(a, b, goals) {
  const stepMs = Math.max(a.stepMs, b.stepMs);
  const endMs = Math.max(a.endMs, b.endMs);
  const n = Math.ceil(endMs / stepMs);
  const x = Float64Array.from({ length: n }, (_, i) => (i + 0.5) * stepMs);
  /** @param {Charts} c @param {Float64Array} y */
  const coarse = (c, y) => {
    const out = new Float64Array(n).fill(NaN);
    const k = Math.round(stepMs / c.stepMs);
    for (let i = 0; i < n; i++) {
      let [sum, count] = [0, 0];
      for (let j = i * k; j < Math.min((i + 1) * k, y.length); j++) if (Number.isFinite(y[j])) (sum += y[j]), count++;
      if (count > 0) out[i] = sum / count;
    }
    return out;
  };
  /** @param {string} id @param {string} title @param {string} unit @param {string} name @param {import("./plot.js").Goal[]} [marks] */
  const over = (id, title, unit, name, marks = []) =>
    plot({ id, title, along: "time", unit, x, goals: marks, lines: [{ name: "A", y: coarse(a, a.lines[name]) }, { name: "B", y: coarse(b, b.lines[name]) }] });
  /** @param {"ttft" | "itl" | "e2e"} name @param {string} title @param {import("./plot.js").Goal[]} marks */
  const curve = (name, title, marks) => {
    const { x, ys } = joined([a.quantiles[name], b.quantiles[name]], a.at);
    return plot({ id: `${name}-cdf`, title, about: "Share with at most this latency.", along: "latency", unit: "share", x, goals: marks, lines: [{ name: "A", y: ys[0] }, { name: "B", y: ys[1] }] });
  };
  return [
    curve("ttft", "TTFT", goal("goal", goals.ttft)), curve("itl", "ITL", goal("goal", goals.itl)),
    over("ttft-over-time", "TTFT over time, p90", "ms", "ttft90", goal("goal", goals.ttft)), over("itl-over-time", "ITL over time, p90", "ms", "itl90", goal("goal", goals.itl)),
    over("queue-depth", "Waiting requests", "requests", "waiting"), over("running", "Running requests", "requests", "running"),
    over("output-throughput", "Output tokens per second", "tokens/s", "output"), over("cache-hits", "Prefix hits so far", "share", "hitsSoFar"),
  ];
}
