// A state as scenarios of core/types.d.ts, and the way back from a place in a
// scenario to the field where it was typed.

import { byId, get, matters, standard } from "./fields.js";
import { valuesOf } from "./state.js";

/**
 * @typedef {import("./state.js").State} State
 * @typedef {import("./fields.js").Values} Values
 * @typedef {import("./core/types.d.ts").Scenario} Scenario
 */

const engineKeys = ["num_gpu_blocks", "block_size", "max_num_seqs", "max_num_batched_tokens", "enable_prefix_caching", "enable_chunked_prefill", "preemption_mode",
  "max_model_len", "dp_size", "tensor_parallel_size", "speedup_ratio", "decode_speedup_ratio"];
const sglangKeys = ["schedule_policy", "chunked_prefill_size", "max_prefill_tokens", "schedule_conservativeness"];
const transferKeys = ["kv_transfer_bytes_per_token", "kv_transfer_bandwidth"];
const routerKeys = ["overlap_score_credit", "prefill_load_scale", "decode_active_request_weight", "router_temperature", "router_queue_threshold"];
/** Of traces of some kinds: the field of a name. @type {Record<string, string>} */
const traceKeys = { agenticLanes: "agentic_lanes", executionModel: "execution_model", traceSharedPrefixRatio: "trace_shared_prefix_ratio", traceNumPrefixGroups: "trace_num_prefix_groups" };
/** Scenario's name of a field of the workload that is only renamed. @type {Record<string, string>} */
const syntheticKeys = {
  input_tokens: "inputTokens", output_tokens: "outputTokens", request_count: "requestCount", turns_per_session: "turnsPerSession", inter_turn_delay_ms: "interTurnDelayMs",
  shared_prefix_ratio: "sharedPrefixRatio", num_prefix_groups: "numPrefixGroups",
};

/** The scenario of one fleet. @param {State} s @param {"a" | "b"} side @returns {Scenario} */
export function scenarioOf(s, side) {
  const v = valuesOf(s, side);
  const pools = get(v, "layout") === "pools";
  const engine = engineOf(v, pools);
  /** @type {Record<string, any>} */
  const out = { workload: workloadOf(s, v), engine, router: routerOf(v), timing: timingOf(s, v) };
  if (pools) {
    out.prefillEngine = { ...engine };
    for (const key of ["num_gpu_blocks", "max_num_batched_tokens"]) take(out.prefillEngine, key, v, `prefill_${key}`);
    out.numPrefillWorkers = get(v, "prefill_workers");
    out.numDecodeWorkers = get(v, "decode_workers");
  } else {
    out.numWorkers = get(v, "workers");
  }
  const sla = {};
  take(sla, "ttftMs", v, "sla_ttft_ms");
  take(sla, "itlMs", v, "sla_itl_ms");
  take(sla, "e2eMs", v, "sla_e2e_ms");
  if (Object.keys(sla).length > 0) out.sla = sla;
  const stop = v.max_sim_time_s;
  if (stop !== undefined && stop !== "" && get(v, "source") !== "synthetic") out.maxSimTimeMs = typeof stop === "number" ? stop * 1000 : stop;
  return /** @type {Scenario} */ (out);
}

/** Copies a value that was said; empty is as good as not said where that means something. @param {Record<string, any>} to @param {string} key @param {Values} v @param {string} id */
function take(to, key, v, id) {
  const f = byId.get(id);
  if (f && id in v && !(v[id] === "" && standard(f, v) === "")) to[key] = v[id];
}

/** @param {Values} v @param {boolean} pools */
function engineOf(v, pools) {
  /** @type {Record<string, any>} */
  const e = { type: get(v, "backend") };
  for (const key of engineKeys) take(e, key, v, key);
  if (e.type === "sglang") {
    delete e.preemption_mode;
    const own = {};
    for (const key of sglangKeys) take(own, key, v, key);
    if (Object.keys(own).length > 0) e.sglang = own;
  }
  if (pools) for (const key of transferKeys) take(e, key, v, key);
  return e;
}

/** @param {Values} v */
function routerOf(v) {
  const mode = String(get(v, "router")).replaceAll("-", "_");
  if (mode !== "kv_router") return { mode };
  const config = {};
  for (const key of routerKeys) take(config, key, v, key);
  const r = Object.keys(config).length > 0 ? { mode, config } : { mode };
  take(r, "kvEventLagMs", v, "kv_event_lag_ms");
  return r;
}

/** @param {State} s @param {Values} v */
function timingOf(s, v) {
  switch (get(v, "timing")) {
    case "fixed":
      return { kind: "fixed", prefillMs: get(v, "prefill_ms"), decodeMs: get(v, "decode_ms") };
    case "grid":
      return { kind: "grid", name: `${get(v, "grid")}.json` };
    case "file":
      return { kind: /\.json$/i.test(s.durations) ? "grid" : "npz", name: s.durations };
  }
  return { kind: "polynomial" };
}

/** @param {State} s @param {Values} v */
function workloadOf(s, v) {
  /** @type {Record<string, any>} */
  const w = { kind: get(v, "source") };
  if (w.kind === "synthetic") {
    for (const [id, key] of Object.entries(syntheticKeys)) w[key] = get(v, id);
    const arrivals = get(v, "arrivals");
    if (arrivals === "poisson") (w.requestRate = get(v, "request_rate")), take(w, "arrivalSeed", v, "arrival_seed");
    else if (arrivals === "constant") w.arrivalIntervalMs = get(v, "arrival_interval_ms");
    else w.concurrency = get(v, "concurrency");
    return w;
  }
  if (w.kind === "sample") w.sample = sampleFiles[String(get(v, "sample"))];
  else {
    w.name = s.trace;
    if (get(v, "format") !== "auto") w.format = get(v, "format");
    take(w, "traceBlockSize", v, "trace_block_size");
  }
  const byName = { concurrency: "concurrency", arrivalSpeedup: "arrival_speedup", ...traceKeys };
  for (const [key, id] of Object.entries(byName)) if (matters(/** @type {import("./fields.js").Field} */ (byId.get(id)), v)) take(w, key, v, id);
  if (w.sample === sampleFiles.agents) w.executionModel ??= get(v, "execution_model");
  return w;
}

/** Files of the samples. @type {Record<string, string>} */
export const sampleFiles = {
  "conversation-300": "conversation-300.jsonl", "conversation-2k": "conversation-2k.jsonl", "support-sessions": "support-sessions.jsonl", agents: "agents.json", table: "table.csv",
};

/** @type {Record<string, string>} */
const places = {
  "engine.type": "backend", "prefillEngine.type": "backend", "prefillEngine.num_gpu_blocks": "prefill_num_gpu_blocks", "prefillEngine.max_num_batched_tokens": "prefill_max_num_batched_tokens",
  numWorkers: "workers", numPrefillWorkers: "prefill_workers", numDecodeWorkers: "decode_workers", "router.mode": "router", router: "router", "router.kvEventLagMs": "kv_event_lag_ms",
  "timing.prefillMs": "prefill_ms", "timing.decodeMs": "decode_ms", timing: "timing", "sla.ttftMs": "sla_ttft_ms", "sla.itlMs": "sla_itl_ms", "sla.e2eMs": "sla_e2e_ms", maxSimTimeMs: "max_sim_time_s",
  trace: "source", "workload.concurrency": "concurrency", "workload.arrivalSpeedup": "arrival_speedup", "workload.traceBlockSize": "trace_block_size", "workload.requestRate": "request_rate",
  "workload.arrivalIntervalMs": "arrival_interval_ms", "workload.arrivalSeed": "arrival_seed", "workload.format": "format", "workload.kind": "source", workload: "source",
};
for (const [key, id] of Object.entries(traceKeys)) places[`workload.${key}`] = id;
for (const [id, key] of Object.entries(syntheticKeys)) places[`workload.${key}`] = id;

/** The field at a place of a scenario, "" for none. @param {string} path @param {Values} v */
export function fieldAt(path, v) {
  const known = places[path];
  if (known?.startsWith("prefill_") && !(known in v)) return known.slice(8);
  if (known) return known;
  const last = path.split(".").pop() ?? "";
  return byId.has(last) ? last : "";
}
