// The settings of the playground: their names in links, defaults, ranges of
// sliders, and when they matter. Controls, links and sweeps are made from this
// one list. What is accepted is not said here: the core says it.

/**
 * @typedef {string | number | boolean} Value what was typed that is no number stays a string
 * @typedef {Record<string, Value>} Values by field; absent: the default
 *
 * @typedef {object} Field
 * @property {string} id key in links; those of an engine are the names in engine arguments
 * @property {string} label
 * @property {"whole" | "real" | "choice" | "toggle" | "text"} kind
 * @property {Value | ((v: Values) => Value)} def default; "" for a number: not set
 * @property {string} [unit]
 * @property {[string, string][]} [choices] value and label
 * @property {[number, number]} [range] of the slider, both ends included
 * @property {boolean} [log] the slider is logarithmic
 * @property {number} [step] of the slider, if it is not logarithmic
 * @property {string} [unset] what an empty number means
 * @property {string} [help]
 * @property {(v: Values) => boolean} [when] it matters
 * @property {boolean} [sweep] it can be swept
 * @property {boolean} [radio] few choices, shown side by side
 *
 * @typedef {{id: string, title: string, more?: boolean, fields: Field[]}} Group more: shown when asked for
 */

/** @type {[string, string][]} */
export const samples = [
  ["conversation-300", "Conversations, 300 requests"],
  ["conversation-2k", "Conversations, 2,000 requests"],
  ["support-sessions", "Support chats with think times"],
  ["agents", "An agent that calls others"],
  ["table", "A table as of BurstGPT"],
];

/** Shipped grids: file, label, what they are for. */
export const grids = [
  { file: "grid-h200_sxm-vllm-Llama-3.1-8B-tp1", gpu: "H200 SXM", model: "Llama 3.1 8B", engine: "vllm", tp: 1 },
  { file: "grid-h200_sxm-sglang-Qwen3-32B-tp2", gpu: "H200 SXM", model: "Qwen3 32B", engine: "sglang", tp: 2 },
  { file: "grid-b200_sxm-trtllm-Qwen3-32B-tp4", gpu: "B200 SXM", model: "Qwen3 32B", engine: "trtllm", tp: 4 },
];

/** @type {[string, string][]} */
const formats = [
  ["auto", "by the looks of it"], ["mooncake", "Mooncake"], ["mooncake-delta", "Mooncake, increments"], ["agentic_mooncake", "Mooncake of agents"],
  ["applied_compute_agentic", "Applied Compute"], ["dynamo", "Dynamo"], ["weka", "Weka"], ["azure", "Azure"], ["burstgpt", "BurstGPT"],
];

/** @param {string} id @param {Value} value @returns {(v: Values) => boolean} */
const is = (id, value) => (v) => get(v, id) === value;
const synthetic = is("source", "synthetic");
const trace = (/** @type {Values} */ v) => !synthetic(v);
const file = is("source", "file");
const agents = (/** @type {Values} */ v) => file(v) || (get(v, "source") === "sample" && get(v, "sample") === "agents");
const loose = (/** @type {Values} */ v) => file(v) || (get(v, "source") === "sample" && get(v, "sample") === "table");
const pools = is("layout", "pools");
const whole = (/** @type {Values} */ v) => !pools(v);
const sglang = is("backend", "sglang");

/** @type {Group[]} */
export const workloadGroups = [
  {
    id: "workload", title: "Workload", fields: [
      { id: "source", label: "Requests from", kind: "choice", radio: true, def: "sample", choices: [["sample", "Sample"], ["file", "File"], ["synthetic", "Synthetic"]] },
      { id: "sample", label: "Sample", kind: "choice", def: "conversation-300", choices: samples, when: is("source", "sample") },
      { id: "format", label: "Format", kind: "choice", def: "auto", choices: formats, when: is("source", "file") },
      { id: "trace_block_size", label: "Hash id stands for", unit: "tokens", kind: "whole", def: 512, when: (v) => get(v, "source") === "file", help: "For formats that do not say it themselves." },
      { id: "input_tokens", label: "Prompt", unit: "tokens", kind: "whole", def: 2000, range: [16, 65536], log: true, when: synthetic, sweep: true },
      { id: "output_tokens", label: "Answer", unit: "tokens", kind: "whole", def: 200, range: [1, 8192], log: true, when: synthetic, sweep: true },
      { id: "request_count", label: "Sessions", kind: "whole", def: 400, range: [1, 10000], log: true, when: synthetic, help: "A session of one turn is one request." },
      { id: "turns_per_session", label: "Turns of a session", kind: "whole", def: 1, range: [1, 20], step: 1, when: synthetic, sweep: true },
      { id: "inter_turn_delay_ms", label: "Think time", unit: "ms", kind: "real", def: 0, range: [0, 60000], step: 500, when: (v) => synthetic(v) && get(v, "turns_per_session") !== 1 },
      { id: "shared_prefix_ratio", label: "Shared prefix", kind: "real", def: 0, range: [0, 1], step: 0.05, when: synthetic, sweep: true, help: "Share of a prompt that a group of sessions has in common." },
      { id: "num_prefix_groups", label: "Groups that share", kind: "whole", def: 0, range: [0, 100], step: 1, when: synthetic, help: "0: nothing is shared." },
      { id: "arrivals", label: "Arrivals", kind: "choice", def: "poisson", choices: [["poisson", "at random"], ["constant", "at even intervals"], ["cap", "as sessions end"]], when: synthetic },
      { id: "request_rate", label: "Rate", unit: "/s", kind: "real", def: 4, range: [0.1, 1000], log: true, when: (v) => synthetic(v) && get(v, "arrivals") === "poisson", sweep: true },
      { id: "arrival_interval_ms", label: "Interval", unit: "ms", kind: "real", def: 250, range: [1, 10000], log: true, when: (v) => synthetic(v) && get(v, "arrivals") === "constant", sweep: true },
      { id: "concurrency", label: "Sessions at a time", kind: "whole", def: (v) => (synthetic(v) ? 32 : ""), unset: "as traced", range: [1, 1024], log: true, when: (v) => trace(v) || get(v, "arrivals") === "cap", sweep: true },
      { id: "arrival_speedup", label: "Load", unit: "×", kind: "real", def: 1, range: [0.1, 20], log: true, when: trace, sweep: true, help: "Divides the times between arrivals." },
    ],
  },
  {
    id: "workload-more", title: "More of the workload", more: true, fields: [
      { id: "arrival_seed", label: "Seed of arrivals", kind: "whole", def: 42, when: (v) => synthetic(v) && get(v, "arrivals") === "poisson" },
      { id: "agentic_lanes", label: "Plays at a time", kind: "whole", def: "", unset: "all", when: agents, help: "Of a trace of agents." },
      { id: "execution_model", label: "Model", kind: "text", def: (v) => (get(v, "source") === "sample" ? "m" : ""), unset: "none", when: agents, help: "That serves a trace of agents; a label." },
      { id: "trace_shared_prefix_ratio", label: "Shared prefix", kind: "real", def: "", unset: "none", range: [0, 1], step: 0.05, when: loose, help: "Of traces without hash ids: share of a first prompt." },
      { id: "trace_num_prefix_groups", label: "Groups that share", kind: "whole", def: "", unset: "none", when: loose },
      { id: "max_sim_time_s", label: "Stop after", unit: "s", kind: "real", def: "", unset: "the end", when: trace },
    ],
  },
];

/** @type {Group[]} */
export const fleetGroups = [
  {
    id: "fleet", title: "Fleet", fields: [
      { id: "backend", label: "Engine", kind: "choice", radio: true, def: "vllm", choices: [["vllm", "vLLM"], ["sglang", "SGLang"], ["trtllm", "TRT-LLM"]] },
      { id: "layout", label: "Workers", kind: "choice", radio: true, def: "whole", choices: [["whole", "Aggregated"], ["pools", "Prefill/decode"]] },
      { id: "workers", label: "Workers", kind: "whole", def: 1, range: [1, 64], log: true, when: whole, sweep: true },
      { id: "prefill_workers", label: "Prefill workers", kind: "whole", def: 1, range: [1, 32], log: true, when: pools, sweep: true },
      { id: "decode_workers", label: "Decode workers", kind: "whole", def: 1, range: [1, 32], log: true, when: pools, sweep: true },
      { id: "router", label: "Router", kind: "choice", def: "round_robin", choices: [["round_robin", "Round robin"], ["kv_router", "KV router"], ["random", "Random"], ["power-of-two", "Power of two"], ["least-loaded", "Least loaded"]] },
    ],
  },
  {
    id: "router-more", title: "Router weights", more: true, fields: [
      { id: "overlap_score_credit", label: "Credit of a cached block", kind: "real", def: 1, range: [0, 2], step: 0.05, when: is("router", "kv_router"), sweep: true },
      { id: "prefill_load_scale", label: "Weight of prompt work", kind: "real", def: 1, range: [0, 4], step: 0.1, when: is("router", "kv_router"), sweep: true },
      { id: "decode_active_request_weight", label: "Weight of a live request", unit: "blocks", kind: "real", def: 0, range: [0, 50], step: 1, when: is("router", "kv_router"), sweep: true },
      { id: "router_temperature", label: "Temperature", kind: "real", def: 0, range: [0, 2], step: 0.05, when: is("router", "kv_router"), sweep: true },
      { id: "router_queue_threshold", label: "Requests wait above", kind: "real", def: "", unset: "never", when: is("router", "kv_router"), help: "Part of a pass's token budget." },
      { id: "kv_event_lag_ms", label: "Lag of cache events", unit: "ms", kind: "real", def: 0, range: [0, 1000], step: 10, when: is("router", "kv_router"), sweep: true },
    ],
  },
  {
    id: "memory", title: "Engine", fields: [
      { id: "num_gpu_blocks", label: "KV blocks", kind: "whole", def: (v) => (get(v, "timing") === "grid" || get(v, "timing") === "file" ? "" : 16384), unset: "of the grid", range: [256, 131072], log: true, sweep: true, help: "Of each rank." },
      { id: "block_size", label: "Block", unit: "tokens", kind: "whole", def: (v) => ({ sglang: 1, trtllm: 32 })[String(get(v, "backend"))] ?? 64, range: [1, 256], log: true },
      { id: "max_num_seqs", label: "Running requests", kind: "whole", def: 256, range: [1, 1024], log: true, sweep: true, help: "At most, of each rank." },
      { id: "max_num_batched_tokens", label: "Tokens of a pass", kind: "whole", def: 8192, range: [256, 65536], log: true, sweep: true, help: "At most." },
      { id: "enable_prefix_caching", label: "Prefix caching", kind: "toggle", def: true },
      { id: "kv_transfer_bytes_per_token", label: "KV cache of a token", unit: "bytes", kind: "whole", def: "", unset: "no time", range: [1024, 1048576], log: true, when: pools },
      { id: "kv_transfer_bandwidth", label: "Transfers", unit: "GB/s", kind: "real", def: "", unset: "no time", range: [1, 900], log: true, when: pools, sweep: true },
    ],
  },
  {
    id: "engine-more", title: "More of the engine", more: true, fields: [
      { id: "enable_chunked_prefill", label: "Chunked prefill", kind: "toggle", def: true },
      { id: "preemption_mode", label: "Preempted first", kind: "choice", def: "lifo", choices: [["lifo", "the newest"], ["fifo", "the oldest"]], when: (v) => !sglang(v) },
      { id: "max_model_len", label: "Model length", unit: "tokens", kind: "whole", def: "", unset: "no limit" },
      { id: "dp_size", label: "Data-parallel ranks", kind: "whole", def: 1, range: [1, 16], log: true },
      { id: "tensor_parallel_size", label: "GPUs of a rank", kind: "whole", def: (v) => (["grid", "file"].includes(String(get(v, "timing"))) ? "" : 1), unset: "of the grid" },
      { id: "schedule_policy", label: "Schedule policy", kind: "choice", def: "fifo", choices: [["fifo", "first come"], ["lpm", "longest cached prefix"]], when: sglang },
      { id: "chunked_prefill_size", label: "Prefill chunk", unit: "tokens", kind: "whole", def: 8192, range: [256, 65536], log: true, when: sglang },
      { id: "max_prefill_tokens", label: "Prompt tokens of a pass", kind: "whole", def: 16384, when: sglang },
      { id: "schedule_conservativeness", label: "Conservativeness", kind: "real", def: 1, when: sglang },
      { id: "prefill_num_gpu_blocks", label: "KV blocks, prefill", kind: "whole", def: "", unset: "as above", when: pools, sweep: true },
      { id: "prefill_max_num_batched_tokens", label: "Tokens of a pass, prefill", kind: "whole", def: "", unset: "as above", when: pools, sweep: true },
    ],
  },
  {
    id: "timing", title: "Pass durations", fields: [
      { id: "timing", label: "From", kind: "choice", def: "polynomial", choices: [["polynomial", "Default formula"], ["grid", "GPU and model"], ["fixed", "Two constants"], ["file", "File (.npz or grid)"]] },
      { id: "grid", label: "GPU and model", kind: "choice", def: grids[0].file, choices: grids.map((g) => [g.file, `${g.gpu}${g.tp > 1 ? ` × ${g.tp}` : ""}, ${g.model}`]), when: is("timing", "grid") },
      { id: "prefill_ms", label: "A prefill pass", unit: "ms", kind: "real", def: 50, range: [1, 1000], log: true, when: is("timing", "fixed"), sweep: true },
      { id: "decode_ms", label: "A decode pass", unit: "ms", kind: "real", def: 10, range: [1, 200], log: true, when: is("timing", "fixed"), sweep: true },
      { id: "speedup_ratio", label: "Speed-up", unit: "×", kind: "real", def: 1, range: [0.1, 20], log: true, sweep: true, help: "Divides all durations." },
      { id: "decode_speedup_ratio", label: "of decode", unit: "×", kind: "real", def: 1, range: [0.1, 20], log: true, sweep: true, help: "Divides those of decode once more." },
    ],
  },
];

/** @type {Group[]} */
export const goalGroups = [
  {
    id: "goals", title: "Goals", fields: [
      { id: "sla_ttft_ms", label: "TTFT at most", unit: "ms", kind: "real", def: "", unset: "none", range: [10, 30000], log: true },
      { id: "sla_itl_ms", label: "Mean ITL at most", unit: "ms", kind: "real", def: "", unset: "none", range: [1, 500], log: true },
      { id: "sla_e2e_ms", label: "E2E at most", unit: "ms", kind: "real", def: "", unset: "none", range: [100, 300000], log: true, help: "Instead of the other two." },
    ],
  },
];

/** Fields that all configurations share, and those that each has. */
export const sharedFields = [...workloadGroups, ...goalGroups].flatMap((g) => g.fields);
export const fleetFields = fleetGroups.flatMap((g) => g.fields);

/** @type {Map<string, Field>} */
export const byId = new Map([...sharedFields, ...fleetFields].map((f) => [f.id, f]));

/** The value of a field, its default if it is absent. @param {Values} v @param {string} id @returns {Value} */
export function get(v, id) {
  if (id in v) return v[id];
  const f = byId.get(id);
  return f ? standard(f, v) : "";
}

/** @param {Field} f @param {Values} v @returns {Value} */
export function standard(f, v) {
  return typeof f.def === "function" ? f.def(v) : f.def;
}

/** What a text means to a field; text that is no number stays text. @param {Field} f @param {string} text @returns {Value} */
export function read(f, text) {
  if (f.kind === "toggle") return text === "true" || text === "on" || text === "1";
  if (f.kind === "choice" || f.kind === "text") return text;
  const t = text.trim();
  if (t === "" || !/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(t)) return t;
  return Number(t);
}

/** Whether a field takes part under these values. @param {Field} f @param {Values} v */
export function matters(f, v) {
  return f.when?.(v) ?? true;
}

/** A label with its unit, for sentences and axes. @param {Field} f */
export const named = (f) => (f.unit ? `${f.label}, ${f.unit}` : f.label);
