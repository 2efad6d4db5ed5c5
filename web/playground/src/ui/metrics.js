// The numbers that fleets are compared by: where they stand in a result, how
// they are spelt, and which direction is better.

import { spell, spellShare, spellTime } from "./dom.js";

/**
 * @typedef {import("../core/types.d.ts").Result} Result
 *
 * @typedef {object} Metric
 * @property {string} id
 * @property {string} label
 * @property {string} unit "ms", "share" or another
 * @property {"less" | "more" | ""} better
 * @property {(r: Result) => number} of
 */

/** @param {string} name @param {keyof import("../core/types.d.ts").Distribution} part @returns {(r: Result) => number} */
const dist = (name, part) => (r) => (samplesOf(r, name) === 0 ? NaN : r.summary.distributions[name][part]);

/** @param {Result} r @param {string} name */
function samplesOf(r, name) {
  const key = { ttft_ms: "num_ttft_samples", tpot_ms: "num_tpot_samples", itl_ms: "num_tpot_samples", e2e_latency_ms: "num_e2e_latency_samples" }[name];
  return key ? (r.summary.numbers[key] ?? 1) : r.summary.numbers.completed_requests;
}

/** GPUs that served, on average. @param {Result} r */
export const gpus = (r) => (r.summary.numbers.duration_ms > 0 ? (r.summary.numbers.gpu_hours * 3.6e6) / r.summary.numbers.duration_ms : NaN);

/** Share of completed requests within the goals; NaN without goals. @param {Result} r */
export const withinGoals = (r) => (r.summary.hasSLA && r.summary.numbers.completed_requests > 0 ? r.summary.numbers.goodput_completed_requests / r.summary.numbers.completed_requests : NaN);

/** Requests that were not completed. @param {Result} r */
export function unserved(r) {
  const n = r.summary.numbers;
  return n.rejected_requests + n.failed_requests + n.cancelled_requests + n.unfinished_requests;
}

/** @type {Metric[]} */
export const metrics = [
  { id: "ttft-p50", label: "TTFT, median", unit: "ms", better: "less", of: dist("ttft_ms", "median") },
  { id: "ttft-p90", label: "TTFT, p90", unit: "ms", better: "less", of: dist("ttft_ms", "p90") },
  { id: "ttft-p99", label: "TTFT, p99", unit: "ms", better: "less", of: dist("ttft_ms", "p99") },
  { id: "itl-p50", label: "ITL, median", unit: "ms", better: "less", of: dist("itl_ms", "median") },
  { id: "itl-p90", label: "ITL, p90", unit: "ms", better: "less", of: dist("itl_ms", "p90") },
  { id: "itl-p99", label: "ITL, p99", unit: "ms", better: "less", of: dist("itl_ms", "p99") },
  { id: "e2e-p50", label: "Request latency, median", unit: "ms", better: "less", of: dist("e2e_latency_ms", "median") },
  { id: "e2e-p99", label: "Request latency, p99", unit: "ms", better: "less", of: dist("e2e_latency_ms", "p99") },
  { id: "goodput", label: "Within the goals", unit: "share", better: "more", of: withinGoals },
  { id: "output", label: "Output", unit: "tokens/s", better: "more", of: (r) => r.summary.numbers.output_throughput_tok_s },
  { id: "output-gpu", label: "Output per GPU", unit: "tokens/s", better: "more", of: (r) => r.summary.numbers.output_throughput_tok_s / gpus(r) },
  { id: "requests", label: "Requests served", unit: "/s", better: "more", of: (r) => r.summary.numbers.request_throughput_rps },
  { id: "hits", label: "Prefix hits", unit: "share", better: "more", of: (r) => r.summary.numbers.first_admission_prefix_cache_reused_ratio },
  { id: "unserved", label: "Requests not completed", unit: "", better: "less", of: unserved },
  { id: "duration", label: "Simulated time", unit: "ms", better: "less", of: (r) => r.summary.numbers.duration_ms },
  { id: "gpu-hours", label: "GPU hours", unit: "", better: "less", of: (r) => r.summary.numbers.gpu_hours },
];

/** @param {number} x @param {string} unit */
export function spelt(x, unit) {
  if (unit === "ms") return spellTime(x);
  if (unit === "share") return spellShare(x);
  return unit ? `${spell(x)} ${unit}` : spell(x);
}

/** From a to b in per cent, and whether that is better. @param {Metric} m @param {number} a @param {number} b @returns {{text: string, verdict: "better" | "worse" | "same" | ""}} */
export function change(m, a, b) {
  if (!Number.isFinite(a) || !Number.isFinite(b)) return { text: "–", verdict: "" };
  if (a === b) return { text: "same", verdict: "same" };
  const points = m.unit === "share";
  const by = points ? 100 * (b - a) : a === 0 ? Infinity : (100 * (b - a)) / Math.abs(a);
  const sign = b > a ? "+" : "−";
  const size = Number.isFinite(by) ? `${Math.abs(by).toLocaleString("en-US", { maximumFractionDigits: Math.abs(by) < 10 ? 1 : 0 })} ${points ? "points" : "%"}` : "from 0";
  const rose = b > a ? "more" : "less";
  return { text: `${Number.isFinite(by) ? sign : ""}${size}`, verdict: m.better === "" ? "" : rose === m.better ? "better" : "worse" };
}
