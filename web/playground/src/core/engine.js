// @ts-check
// The arguments of an engine: their names, types and defaults, what is accepted,
// and the keys of frames that they become. See docs/frames.md and replay --help.

import { found, nearest, oneOf, quote } from './wording.js';

/** @typedef {import('./msgpack.js').Value} Value */
/** @typedef {import('./types.js').Engine} EngineArgs */
/** @typedef {import('./wording.js').ComplaintList} ComplaintList */

/** No limit. */
export const UNBOUNDED = 1n << 62n;
const MOST_64 = (1n << 64n) - 1n;

const BOOL = 'true or false';
const TEXT = 'a text or null';
const REAL = 'a finite number of at least 0';
const SHARE = 'a number from 0 to 1 or null';
const POSITIVE = 'a whole number of at least 1';
const NATURAL = 'a whole number of at least 0';
const OBJECT = 'an object';

export const BACKENDS = ['vllm', 'sglang', 'trtllm'];
export const ROLES = ['aggregated', 'prefill', 'decode'];
const PREEMPTION = ['lifo', 'fifo'];
const TRANSFERS = ['full_prompt', 'destination_missing'];
const POLICIES = ['fifo', 'lpm'];
const TIMINGS = ['polynomial', 'fixed', 'external'];
const QUEUES = ['fcfs', 'lcfs', 'wspt'];
const HOST_SCOPES = ['dp_rank_local', 'cluster_shared'];
const DISK_SCOPES = ['worker_local', 'cluster_shared'];

/**
 * What a value is stored as: undefined asks for the field's own sentence.
 * @typedef {(x: unknown) => Value | null | undefined} Read
 * @typedef {{accepts: string, read: Read, frame?: string, object?: Fields, later?: (x: unknown) => string, required?: string[]}} Field
 * @typedef {Record<string, Field>} Fields
 */

/** A whole number in plain digits as JSON would have it; null if it is none. @param {unknown} x */
export function wholeOf(x) {
  if (typeof x === 'bigint') return x;
  if (typeof x !== 'number') return null;
  const digits = JSON.stringify(x);
  return /^\d+$/.test(digits) ? BigInt(digits) : null;
}

/** @param {bigint} low @param {bigint} high @param {bigint} [cap] @returns {Read} */
const whole = (low, high, cap = high) => (x) => {
  const n = wholeOf(x);
  if (n === null || n < low || n > high) return undefined;
  return n > cap ? cap : n;
};
/** Any whole number from 0: the core says which are too small or too large. */
const count = whole(0n, MOST_64, UNBOUNDED + 1n);
/** One with a meaning of its own for what is too much. */
const capped = whole(0n, MOST_64, UNBOUNDED);
/** @param {Value | null} as @param {Read} read @returns {Read} */
const orNull = (as, read) => (x) => (x === null ? as : read(x));
/** @type {Read} */
const bool = (x) => (typeof x === 'boolean' ? x : undefined);
/** @type {Read} */
const finite = (x) => (typeof x === 'number' && Number.isFinite(x) ? x : undefined);
/** @param {number} low @param {number} high @returns {Read} */
const real = (low, high) => (x) => (typeof x === 'number' && Number.isFinite(x) && x >= low && x <= high ? x : undefined);
/** @type {Read} */
const text = (x) => (typeof x === 'string' ? x : undefined);
/** @param {string[]} words @returns {Read} */
const word = (words) => (x) => (typeof x === 'string' && words.includes(x) ? words.indexOf(x) : undefined);
const notNegative = real(0, Infinity);

/** @param {string} feature @param {string} accepted @param {(x: unknown) => boolean} neutral @param {(x: unknown) => boolean} known @param {string} accepts @returns {Field} */
const later = (feature, accepted, neutral, known, accepts) => ({
  accepts,
  read: (x) => (neutral(x) || known(x) ? null : undefined),
  later: (x) => (neutral(x) ? '' : `${feature} is not built yet; ${accepted} is accepted`),
});
/** @param {string} feature @param {string} type @param {string} accepts */
const nullOnly = (feature, type, accepts) => later(feature, 'null', (x) => x === null, (x) => typeOf(x) === type, accepts);

/** @param {unknown} x */
export function typeOf(x) {
  return x === null ? 'null' : Array.isArray(x) ? 'array' : typeof x;
}

/** @type {Fields} */
const SGLANG = {
  schedule_policy: { accepts: oneOf(POLICIES), read: word(POLICIES), frame: 'engine.sglang.policy' },
  max_prefill_tokens: { accepts: NATURAL, read: capped, frame: 'engine.sglang.max_prefill_tokens' },
  chunked_prefill_size: { accepts: NATURAL, read: whole(0n, MOST_64), frame: 'engine.sglang.chunked_prefill_size' },
  clip_max_new_tokens: { accepts: NATURAL, read: capped, frame: 'engine.sglang.clip_max_new_tokens' },
  schedule_conservativeness: { accepts: 'a finite number', read: finite, frame: 'engine.sglang.conservativeness' },
};

const HOST = 'engine.host_offload.';
/** @type {Fields} */
const HOST_OFFLOAD = {
  num_host_blocks: { accepts: POSITIVE, read: whole(1n, MOST_64, UNBOUNDED), frame: HOST + 'blocks' },
  scope: { accepts: oneOf(HOST_SCOPES), read: word(HOST_SCOPES), frame: HOST + 'scope' },
  d2h_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: HOST + 'd2h_gbs' },
  h2d_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: HOST + 'h2d_gbs' },
  shared_d2h_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: HOST + 'shared_d2h_gbs' },
  shared_h2d_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: HOST + 'shared_h2d_gbs' },
  latency_to_first_byte_ms: { accepts: REAL, read: notNegative, frame: HOST + 'first_byte_latency_ms' },
  kv_layout_id: { accepts: TEXT, read: orNull(null, text) },
};
/** What the reference takes for a pool that says no more. */
const HOST_DEFAULTS = { d2h_gbs: 32, h2d_gbs: 32, shared_d2h_gbs: 80, shared_h2d_gbs: 80 };

const DISK = 'engine.disk_offload.';
/** @type {Fields} */
const DISK_OFFLOAD = {
  scope: { accepts: oneOf(DISK_SCOPES), read: word(DISK_SCOPES), frame: DISK + 'scope' },
  num_g3_blocks: { accepts: POSITIVE, read: whole(1n, MOST_64, UNBOUNDED), frame: DISK + 'blocks' },
  latency_to_first_byte_ms: { accepts: REAL, read: notNegative, frame: DISK + 'first_byte_latency_ms' },
  read_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: DISK + 'read_gbs' },
  write_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: DISK + 'write_gbs' },
  shared_read_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: DISK + 'shared_read_gbs' },
  shared_write_bandwidth_gbps: { accepts: REAL, read: notNegative, frame: DISK + 'shared_write_gbs' },
};
const DISK_DEFAULTS = { read_gbs: 10, write_gbs: 10, shared_read_gbs: 80, shared_write_gbs: 80, first_byte_latency_ms: 0.1 };

const bytesPerToken = { accepts: `${POSITIVE} or null`, read: orNull(null, whole(1n, MOST_64, UNBOUNDED)) };
const optShare = { accepts: SHARE, read: orNull(null, real(0, 1)) };

/** Fields of "engine" in the canonical form. @type {Fields} */
export const ENGINE = {
  backend: { accepts: oneOf(BACKENDS), read: word(BACKENDS), frame: 'engine.backend' },
  num_gpu_blocks: { accepts: POSITIVE, read: count, frame: 'engine.num_gpu_blocks' },
  block_size: { accepts: `${POSITIVE} or null`, read: orNull(null, count), frame: 'engine.block_size' },
  max_model_len: { accepts: `${POSITIVE} or null`, read: orNull(0n, whole(1n, MOST_64, UNBOUNDED)), frame: 'engine.max_model_len' },
  max_num_seqs: { accepts: `${POSITIVE} or null (no limit)`, read: orNull(UNBOUNDED, capped), frame: 'engine.max_num_seqs' },
  max_num_batched_tokens: { accepts: `${POSITIVE} or null (no limit)`, read: orNull(UNBOUNDED, capped), frame: 'engine.max_num_batched_tokens' },
  prefill_schedule_interval: { accepts: POSITIVE, read: whole(1n, MOST_64, UNBOUNDED), frame: 'engine.prefill_schedule_interval' },
  prefill_decode_interval: { accepts: NATURAL, read: capped, frame: 'engine.sglang.prefill_decode_interval' },
  enable_prefix_caching: { accepts: BOOL, read: bool, frame: 'engine.enable_prefix_caching' },
  enable_chunked_prefill: { accepts: BOOL, read: bool, frame: 'engine.enable_chunked_prefill' },
  speedup_ratio: { accepts: REAL, read: finite, frame: 'engine.speedup_ratio' },
  decode_speedup_ratio: { accepts: REAL, read: finite, frame: 'engine.decode_speedup_ratio' },
  aic_nextn: { accepts: 'a whole number from 1 to 5 or null', read: orNull(0n, whole(1n, 5n)), frame: 'engine.mtp.drafts' },
  aic_nextn_accept_rates: { accepts: TEXT, read: orNull(null, text) },
  aic_mtp_seed: { accepts: NATURAL, read: whole(0n, MOST_64), frame: 'engine.mtp.seed' },
  worker_type: { accepts: oneOf(ROLES), read: word(ROLES), frame: 'engine.role' },
  preemption_mode: { accepts: oneOf(PREEMPTION), read: word(PREEMPTION), frame: 'engine.preemption' },
  emit_kv_events: { accepts: BOOL, read: bool, frame: 'engine.emit_kv_events' },
  emit_kv_token_ids: { accepts: BOOL, read: bool, frame: 'engine.emit_kv_token_ids' },
  kv_transfer_bytes_per_token: { ...bytesPerToken, frame: 'engine.transfer.bytes_per_token' },
  kv_bytes_per_token: { ...bytesPerToken, frame: 'engine.transfer.bytes_per_token' },
  kv_cache_bytes_per_token: { accepts: `${POSITIVE} or null`, read: orNull(null, whole(1n, MOST_64, (1n << 63n) - 1n)), frame: 'engine.kv_cache_bytes_per_token' },
  kv_cache_groups: later('a KV cache split in groups', '[]', (x) => Array.isArray(x) && x.length === 0, Array.isArray, 'an array'),
  kv_cache_capacity_bytes: nullOnly('a KV cache measured in bytes', 'number', `${NATURAL} or null`),
  native_host_offload: { accepts: `${OBJECT} or null`, read: () => undefined, object: HOST_OFFLOAD, required: ['num_host_blocks'] },
  state_cache: nullOnly('the recurrent-state cache', 'object', `${OBJECT} or null`),
  kv_eviction_policy: later("Belady's eviction", '"lru"', (x) => x === null || x === 'lru', (x) => x === 'belady', '"lru" or null'),
  prefix_match_unit: nullOnly('a prefix match unit other than the block', 'number', `${POSITIVE} or null`),
  g3_offload: { accepts: `${OBJECT} or null`, read: () => undefined, object: DISK_OFFLOAD, required: ['scope', 'num_g3_blocks'] },
  kv_transfer_bandwidth: { accepts: `${REAL} or null`, read: orNull(null, notNegative), frame: 'engine.transfer.bandwidth_gbs' },
  kv_transfer_timing_mode: { accepts: oneOf(TRANSFERS), read: word(TRANSFERS), frame: 'engine.transfer.timing' },
  timing_model: { accepts: 'an object such as {"type": "polynomial"}', read: () => undefined },
  sglang: { accepts: OBJECT, read: () => undefined, object: SGLANG },
  trtllm: { accepts: OBJECT, read: () => undefined, object: { capacity_scheduler_policy: { accepts: oneOf(['guaranteed_no_evict']), read: word(['guaranteed_no_evict']) } } },
};

const port = { accepts: 'a whole number from 0 to 65535 or null', read: orNull(null, whole(0n, 65535n)) };
const token = { accepts: 'a whole number from 0 to 4294967295', read: whole(0n, 0xffffffffn) };
/** Of live workers; the queue policy is the router's, too. @type {Fields} */
const DYNAMO = {
  enable_local_indexer: { accepts: BOOL, read: bool },
  bootstrap_port: port,
  handoff_session_timeout_ms: { accepts: POSITIVE, read: whole(1n, MOST_64) },
  reasoning: {
    accepts: `${OBJECT} or null`,
    read: () => undefined,
    object: { start_thinking_token_id: token, end_thinking_token_id: token, thinking_ratio: { accepts: 'a number from 0 to 1', read: real(0, 1) } },
    required: ['start_thinking_token_id', 'end_thinking_token_id', 'thinking_ratio'],
  },
  response_replay_trace_path: { accepts: TEXT, read: orNull(null, text) },
  zmq_kv_events_port: port,
  zmq_replay_port: port,
  router_queue_policy: { accepts: oneOf(QUEUES, 'null'), read: orNull(null, word(QUEUES)) },
};

/** Fields beside "engine". @type {Fields} */
export const LAUNCH = {
  dp_size: { accepts: POSITIVE, read: count, frame: 'engine.dp_size' },
  tensor_parallel_size: { accepts: POSITIVE, read: count, frame: 'engine.tensor_parallel_size' },
  startup_time: { accepts: `${REAL} or null`, read: orNull(null, notNegative) },
  num_gpu_blocks_is_explicit: { accepts: BOOL, read: bool },
  gpu_memory_utilization: optShare,
  mem_fraction_static: optShare,
  free_gpu_memory_fraction: optShare,
  cuda_graph_reserved_bytes: { accepts: `${NATURAL} or null`, read: orNull(null, whole(0n, MOST_64)) },
  dynamo: { accepts: OBJECT, read: () => undefined, object: DYNAMO },
};

/** The backend of engine arguments, vllm where they do not say it well. @param {EngineArgs | undefined} args */
export function backendOf(args) {
  const type = args?.type;
  return typeof type === 'string' && BACKENDS.includes(type) ? type : 'vllm';
}

/** Tokens of a block where nothing is said. @param {string} backend */
export const defaultBlockSize = (backend) => (backend === 'sglang' ? 1 : backend === 'trtllm' ? 32 : 64);

/**
 * Engine arguments as the canonical JSON has them.
 * @param {EngineArgs} args @param {{role?: string, timing?: object}} [beside]
 */
export function canonical(args, beside = {}) {
  /** @type {Record<string, unknown>} */
  const engine = {};
  /** @type {Record<string, unknown>} */
  const launch = {};
  for (const [key, value] of Object.entries(args)) {
    if (value === undefined) continue;
    if (key === 'type') engine.backend = value;
    else if (Object.hasOwn(LAUNCH, key)) launch[key] = value;
    else engine[key] = value;
  }
  if (beside.role !== undefined && !('worker_type' in engine)) engine.worker_type = beside.role;
  if (beside.timing !== undefined) engine.timing_model = beside.timing;
  return Object.keys(engine).length > 0 ? { engine, ...launch } : launch;
}

/** Engine arguments, read. */
export class ReadEngine {
  /**
   * @param {EngineArgs} args @param {string} at their place in the scenario @param {ComplaintList} complaints
   * @param {{role: string, flag: string, timing?: object}} beside what their workers are for, the flag they are given by, and durations that the scenario has beside them
   */
  constructor(args, at, complaints, { role, flag, timing }) {
    this.args = timing === undefined ? args : { ...args, timing_model: timing };
    this.at = at;
    this.complaints = complaints;
    /** Keys of a frame. @type {Record<string, Value>} */
    this.pairs = {};
    this.backend = backendOf(args);
    for (const key of Object.keys(args)) {
      if (args[key] === undefined) continue;
      const name = key === 'type' ? 'backend' : key;
      const inLaunch = Object.hasOwn(LAUNCH, name);
      const fields = inLaunch ? LAUNCH : ENGINE;
      this.field(fields, name, args[key], inLaunch ? '' : 'engine.', `${at}.${key}`);
    }
    if (timing !== undefined) this.timing(timing, 'timing', { prefill_ms: 'prefillMs', decode_ms: 'decodeMs' });
    this.pairs['engine.block_size'] ??= defaultBlockSize(this.backend);
    this.speculation();
    this.offload();
    const said = args.worker_type;
    if (said !== undefined && said !== role && typeof said === 'string' && ROLES.includes(said)) this.complain(`${at}.worker_type`, `engine.worker_type is ${found(said)}; "${role}" is accepted in ${flag}`);
    else this.pairs['engine.role'] = ROLES.indexOf(role);
  }

  /** @param {string} place @param {string} sentence */
  complain(place, sentence) {
    this.complaints.add(place, sentence);
  }

  /** @param {Fields} fields @param {string} name @param {unknown} x @param {string} prefix @param {string} place */
  field(fields, name, x, prefix, place) {
    if (prefix === 'engine.' && name === 'timing_model') return this.timing(x, place);
    if (!Object.hasOwn(fields, name)) return this.unknown(fields, name, prefix, place);
    const f = fields[name];
    if (f.object !== undefined) return this.nested(f, x, prefix + name, place);
    const value = f.read(x);
    if (value === undefined) this.complain(place, `${prefix + name} is ${found(x)}; ${f.accepts} is accepted`);
    else if (f.later?.(x)) this.complain(place, `${prefix + name} is ${found(x)}, but ${f.later(x)}`);
    else if (f.frame !== undefined && value !== null) this.pairs[f.frame] = value;
  }

  /** @param {Fields} fields @param {string} name @param {string} prefix @param {string} place */
  unknown(fields, name, prefix, place) {
    const near = nearest(name, Object.keys(fields));
    this.complain(place, `unknown field ${quote(prefix + name)}; ` + (near ? `did you mean ${near}?` : `known fields here are ${Object.keys(fields).join(', ')}`));
  }

  /** @param {Field} f @param {unknown} x @param {string} path @param {string} place */
  nested(f, x, path, place) {
    if (x === null && f.accepts.endsWith('or null')) return;
    if (typeOf(x) !== 'object') return this.complain(place, `${path} is ${found(x)}; ${f.accepts} is accepted`);
    const o = /** @type {Record<string, unknown>} */ (x);
    const fields = /** @type {Fields} */ (f.object);
    for (const key of Object.keys(o)) this.field(fields, key, o[key], `${path}.`, `${place}.${key}`);
    for (const key of f.required ?? []) {
      if (!(key in o)) this.complain(place, `${path} has no ${key}; ${fields[key].accepts} is accepted`);
    }
  }

  /** Durations that the arguments say themselves. @param {unknown} x @param {string} place @param {Record<string, string>} [names] in the scenario */
  timing(x, place, names = {}) {
    const path = 'engine.timing_model';
    if (typeOf(x) !== 'object') return this.complain(place, `${path} is ${found(x)}; ${ENGINE.timing_model.accepts} is accepted`);
    const o = /** @type {Record<string, unknown>} */ (x);
    if (!('type' in o)) return this.complain(place, `${path} has no type; ${oneOf(TIMINGS)} is accepted`);
    const kind = TIMINGS.indexOf(/** @type {string} */ (o.type));
    if (kind < 0) return this.complain(`${place}.type`, `${path}.type is ${found(o.type)}; ${oneOf(TIMINGS)} is accepted`);
    if (o.type === 'external') return this.complain(place, `${path} names a file or a model; the scenario's own timing is accepted`);
    this.pairs['engine.timing.kind'] = kind;
    /** @type {Fields} */
    const fields = { type: { accepts: oneOf(TIMINGS), read: () => null } };
    if (o.type === 'fixed') {
      fields.prefill_ms = { accepts: REAL, read: finite, frame: 'engine.timing.prefill_ms' };
      fields.decode_ms = { accepts: REAL, read: finite, frame: 'engine.timing.decode_ms' };
    }
    for (const key of Object.keys(o)) this.field(fields, key, o[key], `${path}.`, `${place}.${names[key] ?? key}`);
    for (const key of Object.keys(fields)) {
      if (!(key in o)) this.complain(place, `${path} has no ${key}; ${fields[key].accepts} is accepted`);
    }
  }

  speculation() {
    const drafts = Number(this.pairs['engine.mtp.drafts'] ?? 0);
    const text = this.args.aic_nextn_accept_rates;
    const said = typeof text === 'string';
    if (drafts === 0) {
      if (said) this.complain(`${this.at}.aic_nextn_accept_rates`, `engine.aic_nextn_accept_rates is ${found(text)}; null is accepted without aic_nextn`);
      return;
    }
    const rates = acceptRates(said ? text : '', drafts);
    if (rates === null) {
      this.complain(`${this.at}.aic_nextn_accept_rates`, `engine.aic_nextn_accept_rates is ${found(text)}; a list of chances from 0 to 1 separated by commas, such as "0.85,0.3", is accepted`);
      return;
    }
    this.pairs['engine.mtp.accept_rates'] = new Uint8Array(Float64Array.from(rates).buffer);
  }

  offload() {
    const p = this.pairs;
    if (HOST + 'blocks' in p) {
      for (const [key, x] of Object.entries(HOST_DEFAULTS)) p[HOST + key] ??= x;
      const host = /** @type {Record<string, unknown>} */ (this.args.native_host_offload);
      const id = host.kv_layout_id;
      if (p[HOST + 'scope'] === 1 && (typeof id !== 'string' || id.trim() === '')) {
        const place = `${this.at}.native_host_offload`;
        const accepted = 'a text that is not blank is accepted with scope cluster_shared';
        if (id === undefined) this.complain(place, `engine.native_host_offload has no kv_layout_id; ${accepted}`);
        else this.complain(`${place}.kv_layout_id`, `engine.native_host_offload.kv_layout_id is ${found(id)}; ${accepted}`);
      }
    } else {
      delete p['engine.kv_cache_bytes_per_token']; // the engine reads it with host memory only
    }
    if (DISK + 'blocks' in p) {
      for (const [key, x] of Object.entries(DISK_DEFAULTS)) p[DISK + key] ??= x;
    }
  }

  /** The chunk of SGLang, as written, is a multiple of its pages, and leaves each rank something. */
  chunk() {
    if (this.backend !== 'sglang') return;
    const key = 'engine.sglang.chunked_prefill_size';
    const p = this.pairs;
    const [size, chunk, ranks] = [BigInt(Number(p['engine.block_size'])), BigInt(/** @type {bigint} */ (p[key] ?? 8192n)), BigInt(Number(p['engine.dp_size'] ?? 1))];
    if (size < 1n || chunk < 1n) return; // for the core to say
    const [block, whole] = [`${this.at}.block_size`, `${this.at}.sglang.chunked_prefill_size`];
    if (chunk % size !== 0n) {
      if (key in p) this.complain(whole, `${key} is ${found(chunk)}; a multiple of the block size ${size} is accepted`);
      else this.complain(block, `engine.block_size is ${found(this.args.block_size)}; a divisor of chunked_prefill_size ${chunk} is accepted`);
    } else if (chunk < ranks) {
      if (key in p) this.complain(whole, `${key} is ${found(chunk)}; at least 1 for each of ${ranks} ranks is accepted`);
      else this.complain(`${this.at}.dp_size`, `dp_size is ${found(this.args.dp_size)}; at most chunked_prefill_size ${chunk} is accepted`);
    }
  }

  /** The keys of a frame, those of a pool if prefix is not engine. @param {string} prefix */
  frame(prefix) {
    const p = { ...this.pairs };
    const key = 'engine.sglang.chunked_prefill_size';
    const chunk = p[key];
    if (typeof chunk === 'bigint' && chunk > UNBOUNDED) {
      const size = BigInt(Number(p['engine.block_size']));
      p[key] = size > 0n && chunk % size === 0n ? UNBOUNDED - (UNBOUNDED % size) : UNBOUNDED;
    }
    /** @type {Record<string, Value>} */
    const out = {};
    for (const [k, v] of Object.entries(p)) out[k.replace(/^engine\./, `${prefix}.`)] = v;
    return out;
  }
}

/**
 * The chances of a number of drafts: blank text stands for the default's,
 * missing ones are 0, surplus ones dropped. Null: no list of chances.
 * @param {string} list @param {number} drafts
 */
export function acceptRates(list, drafts) {
  const rates = [0.85, 0.3, 0, 0, 0];
  if (list.trim() !== '') {
    rates.fill(0);
    for (const [i, w] of list.split(',').entries()) {
      const p = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(w) ? Number(w) : NaN;
      if (!(p >= 0 && p <= 1)) return null;
      if (i < drafts) rates[i] = p;
    }
  }
  return rates.map((p, i) => (i < drafts ? p : 0));
}

