// What a result recorded, as charts and stories take it.

import { latencies, ordinals, sessionID } from "../core/report.js";

/**
 * @typedef {import("../core/types.d.ts").Result} Result
 * @typedef {import("./charts.js").Charts} Charts
 * @typedef {import("./story.js").Story} Story
 */

const kept = 12;

/** @param {Result} r @returns {Charts | null} */
export function chartsOf(r) {
  return r.recording ? null : null;
}

/** @param {Result} r @returns {HTMLElement | null} */
export function timelineOf(r) {
  return r.recording ? null : null;
}

/** Stories of the slowest requests, by what was recorded of each. @param {Result} r */
export function storiesOf(r) {
  const c = r.records;
  const number = ordinals(r.outline);
  const starts = new Int32Array(c.turn.length + 1);
  for (let i = 0; i < c.turn.length; i++) starts[i + 1] = starts[i] + c.admission_count[i];
  /** @param {(l: ReturnType<typeof latencies>) => number} of @returns {Story[]} */
  const slowest = (of) => {
    const order = Array.from(c.turn.keys()).filter((i) => Number.isFinite(of(latencies(c, i))));
    order.sort((i, j) => of(latencies(c, j)) - of(latencies(c, i)) || i - j);
    return order.slice(0, kept).map((i) => storyOf(r, i, number[c.turn[i]], Array.from(c.admission_at_ms.subarray(starts[i], starts[i + 1]))));
  };
  return { byTTFT: () => slowest((l) => l.ttft_ms), byE2E: () => slowest((l) => l.e2e_latency_ms), byITL: () => slowest((l) => l.itl_ms) };
}

/** @param {Result} r @param {number} i @param {number} number @param {number[]} admissions @returns {Story} */
function storyOf(r, i, number, admissions) {
  const c = r.records;
  const l = latencies(c, i);
  const [arrival, first, last] = [c.arrival_ms[i], c.first_token_ms[i], c.last_token_ms[i]];
  /** @type {import("./story.js").Stretch[]} */
  const stretches = [];
  const admitted = admissions[0] ?? c.first_admit_ms[i];
  stretches.push({ kind: "waited", fromMs: arrival, toMs: admitted, text: "waited to be admitted" });
  stretches.push({ kind: "prefill", fromMs: admitted, toMs: first, text: `admitted; prefill of ${(c.input_length[i] - c.reused_tokens[i]).toLocaleString("en-US")} tokens, ${c.reused_tokens[i].toLocaleString("en-US")} were in the cache` });
  stretches.push({ kind: "decode", fromMs: first, toMs: last, text: "first token; decoded" });
  for (const at of admissions.slice(1)) stretches.push({ kind: "preempted", fromMs: at, toMs: at, text: "had been preempted, admitted again" });
  const session = r.outline.session[c.turn[i]];
  return {
    name: `Request ${number}${r.named ? `, session ${sessionID(r.outline, session)}, turn ${r.outline.index[c.turn[i]] + 1}` : `, line ${r.outline.line[session]}`}`,
    arrivalMs: arrival, ttftMs: l.ttft_ms, e2eMs: l.e2e_latency_ms, itlMs: l.itl_ms, input: c.input_length[i], output: c.output_length[i], reused: c.reused_tokens[i],
    worker: `worker ${Math.floor(c.worker[i] / r.ranks)}${r.ranks > 1 ? `, rank ${c.worker[i] % r.ranks}` : ""}`, stretches: stretches.sort((p, q) => p.fromMs - q.fromMs),
  };
}
