// The numbers one looks for first, and all percentiles below them.

import { make, plural, spell, spellShare, spellTime } from "./dom.js";
import { gpus, unserved, withinGoals } from "./metrics.js";
import { table } from "./plot.js";

/**
 * @typedef {import("../core/types.d.ts").Result} Result
 * @typedef {{label: string, value: string, unit?: string, detail: string, alarm?: boolean}} Card
 */

/** @param {Result} r @param {{kvMean: number, kvMost: number, waitingMost: number, preemptions: number} | null} inside */
export function cards(r, inside) {
  const n = r.summary.numbers;
  const list = [latency(r, "TTFT", "ttft_ms"), latency(r, "ITL", "itl_ms"), latency(r, "Request latency", "e2e_latency_ms")];
  if (r.summary.hasSLA) {
    const share = withinGoals(r);
    list.push({ label: "Within the goals", value: spellShare(share), detail: `${spell(n.goodput_request_throughput_rps)} requests/s, ${spell(n.goodput_output_throughput_tok_s)} tokens/s` });
  }
  list.push(
    { label: "Output throughput", value: spell(n.output_throughput_tok_s), unit: "tokens/s", detail: `${spell(n.output_throughput_tok_s / gpus(r))} per GPU, on ${plural(Math.round(gpus(r)), "GPU")}` },
    { label: "Requests served", value: spell(n.request_throughput_rps), unit: "/s", detail: `${n.completed_requests.toLocaleString("en-US")} in ${spellTime(n.duration_ms)}` },
    { label: "Prefix hits", value: spellShare(n.first_admission_prefix_cache_reused_ratio), detail: "of prompt tokens, at first admission" },
  );
  if (inside) {
    list.push(
      { label: "KV blocks in use, peak", value: spellShare(inside.kvMost), detail: `${spellShare(inside.kvMean)} on average`, alarm: inside.kvMost > 0.95 },
      { label: "Waiting, peak", value: spell(inside.waitingMost), unit: "requests", detail: plural(inside.preemptions, "preemption"), alarm: inside.preemptions > 0 },
    );
  }
  const lost = unserved(r);
  if (lost > 0) list.push({ label: "Not completed", value: spell(lost), detail: `${n.rejected_requests} rejected, ${n.failed_requests} failed, ${n.unfinished_requests + n.cancelled_requests} unfinished`, alarm: true });
  return make("dl", { class: "cards" }, ...list.map(card));
}

/** @param {Card} c */
function card(c) {
  return make("div", { class: c.alarm ? "card alarming" : "card" },
    make("dt", {}, c.alarm ? make("span", { class: "alarm" }, "▲ ") : null, c.label, c.alarm ? make("span", { class: "unseen" }, ", worth a look") : null),
    make("dd", { class: "value" }, c.value, c.unit ? make("small", {}, ` ${c.unit}`) : null),
    make("dd", { class: "detail" }, ...c.detail.split(", ").flatMap((part, i, all) => [make("span", { class: "part" }, i < all.length - 1 ? `${part},` : part), " "])));
}

/** @param {Result} r @param {string} label @param {string} name @returns {Card} */
function latency(r, label, name) {
  const d = r.summary.distributions[name];
  const [value, unit = ""] = spellTime(d.median).split(" ");
  return { label: `${label}, median`, value, unit, detail: `p90 ${spellTime(d.p90)}, p99 ${spellTime(d.p99)}` };
}

/** @type {[string, string, boolean][]} */
const rows = [
  ["ttft_ms", "Time to first token", true], ["ttst_ms", "Time to second token", true], ["itl_ms", "Inter-token latency", true], ["tpot_ms", "Time per output token", true],
  ["e2e_latency_ms", "Request latency", true], ["output_token_throughput_per_user", "Output per user, tokens/s", false],
];
/** @type {(keyof import("../core/types.d.ts").Distribution)[]} */
const parts = ["mean", "min", "median", "p75", "p90", "p95", "p99", "max", "std"];

/** All percentiles. @param {Result} r */
export function percentiles(r) {
  const body = rows.map(([name, label, time]) => [label, ...parts.map((p) => (time ? spellTime : spell)(r.summary.distributions[name][p]))]);
  return make("details", { class: "numbers", id: "percentiles" }, make("summary", {}, "All percentiles"), table("Percentiles", ["Metric", ...parts.map((p) => (p === "std" ? "deviation" : p))], body));
}
