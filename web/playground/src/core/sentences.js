// @ts-check
// What is wrong with a run, in the sentences of the command line: codes and fields
// of configurations are those of docs/frames.md. What is wrong with a trace
// stands in tracewords.js.

import { ENGINE, LAUNCH, ROLES } from './engine.js';
import { Refusal, Refused } from './guest.js';
import { graphSentence, objectSentence, recordSentence, traceSentence } from './graphwords.js';
import { lineSentence, rowSentence, syntheticSentence } from './tracewords.js';
import { found } from './wording.js';
import { sentenceFloat } from './spell.js';

/** @typedef {import('./scenario.js').Plan} Plan */
/** @typedef {import('./engine.js').ReadEngine} ReadEngine */
/** @typedef {import('./types.js').Complaint} Complaint */
/** @typedef {import('./msgpack.js').Pairs} Pairs */

/** Codes of configurations. */
export const Code = Object.freeze({
  UnknownValue: 1, NotPositive: 2, Negative: 3, BelowTwo: 4, TooLarge: 5, NotFinite: 6, NegativeFloat: 7, NotPositiveFloat: 8, NeedsChunking: 9, NeedsEvents: 10,
  NotAggregated: 11, Exclusive: 12, NeedsVLLM: 13, NeedsPrefixCaching: 14, NotAChance: 15, NeedsSGLang: 16, NotAMultiple: 17, NotThisRole: 18, Unlike: 19,
  NeedsAggregated: 20, NotAscending: 21, NeedsHostOffload: 22, NeedsRankLocal: 23, TakesNoTime: 24,
});

/** Fields of configurations. */
export const Field = Object.freeze({
  Backend: 1, Role: 2, NumGPUBlocks: 3, BlockSize: 4, TotalSlots: 5, MaxModelLen: 6, MaxNumSeqs: 7, MaxNumBatchedTokens: 8, EnableChunkedPrefill: 9, Preemption: 10,
  SpeedupRatio: 11, DecodeSpeedupRatio: 12, EmitKVTokenIDs: 13, TimingKind: 14, TimingPrefillMs: 15, TimingDecodeMs: 16, DPSize: 17, TensorParallelSize: 18,
  NumWorkers: 19, TraceBlockSize: 20, Concurrency: 21, ArrivalSpeedup: 22, MaxSimTimeMs: 23, SLATTFTMs: 24, SLAITLMs: 25, SLAE2EMs: 26, PrefillScheduleInterval: 27,
  MTPDrafts: 28, MTPAcceptRates: 29, TransferTiming: 30, TransferBytes: 31, TransferBandwidth: 32, KVCacheBytes: 33, HostOffload: 34, SchedulePolicy: 35,
  MaxPrefillTokens: 36, ChunkedPrefillSize: 37, ClipMaxNewTokens: 38, Conservativeness: 39, PrefillDecodeInterval: 40, Lanes: 41, RouterMode: 42, KVEventLag: 43,
  PrefillRole: 44, NumPrefillWorkers: 45, LinkSharing: 46, PrefillPerNode: 47, Scaling: 48, Startup: 49, Samples: 50, DiskOffload: 51,
});

/** Engine arguments by field: their path in the JSON. @type {Record<number, string>} */
const PATHS = {
  [Field.Backend]: 'engine.backend', [Field.Role]: 'engine.worker_type', [Field.NumGPUBlocks]: 'engine.num_gpu_blocks', [Field.TotalSlots]: 'engine.num_gpu_blocks',
  [Field.BlockSize]: 'engine.block_size', [Field.MaxModelLen]: 'engine.max_model_len', [Field.MaxNumSeqs]: 'engine.max_num_seqs',
  [Field.MaxNumBatchedTokens]: 'engine.max_num_batched_tokens', [Field.EnableChunkedPrefill]: 'engine.enable_chunked_prefill', [Field.Preemption]: 'engine.preemption_mode',
  [Field.SpeedupRatio]: 'engine.speedup_ratio', [Field.DecodeSpeedupRatio]: 'engine.decode_speedup_ratio', [Field.EmitKVTokenIDs]: 'engine.emit_kv_token_ids',
  [Field.TimingPrefillMs]: 'engine.timing_model.prefill_ms', [Field.TimingDecodeMs]: 'engine.timing_model.decode_ms',
  [Field.PrefillScheduleInterval]: 'engine.prefill_schedule_interval', [Field.MTPDrafts]: 'engine.aic_nextn', [Field.PrefillDecodeInterval]: 'engine.prefill_decode_interval',
  [Field.MaxPrefillTokens]: 'engine.sglang.max_prefill_tokens', [Field.ChunkedPrefillSize]: 'engine.sglang.chunked_prefill_size',
  [Field.Conservativeness]: 'engine.sglang.schedule_conservativeness', [Field.DPSize]: 'dp_size', [Field.TensorParallelSize]: 'tensor_parallel_size',
  [Field.HostOffload]: 'engine.native_host_offload', [Field.KVCacheBytes]: 'engine.kv_cache_bytes_per_token', [Field.DiskOffload]: 'engine.g3_offload',
};

/** Largest numbers by field. @type {Record<number, bigint>} */
const MOST = {
  [Field.NumGPUBlocks]: (1n << 31n) - 1n, [Field.BlockSize]: (1n << 31n) - 1n, [Field.DPSize]: 1n << 20n, [Field.TensorParallelSize]: (1n << 32n) - 1n,
};
const MOST_SLOTS = (1n << 53n) - 1n;
const WORKERS = 'a whole number from 1 to 1048576';

/** The place in a scenario of a path in the engine arguments. @param {ReadEngine} e @param {string} path */
function placeOf(e, path) {
  if (path.startsWith('engine.timing_model.')) return path === 'engine.timing_model.prefill_ms' ? 'timing.prefillMs' : 'timing.decodeMs';
  const inner = path === 'engine.backend' ? 'type' : path.replace(/^engine\./, '');
  return `${e.at}.${inner}`;
}

/** What stands at a path of the engine arguments, undefined for nothing. @param {ReadEngine} e @param {string} path @returns {unknown} */
function argument(e, path) {
  /** @type {unknown} */
  let x = e.args;
  for (const key of (path === 'engine.backend' ? 'type' : path.replace(/^engine\./, '')).split('.')) {
    if (typeof x !== 'object' || x === null) return undefined;
    x = /** @type {Record<string, unknown>} */ (x)[key];
  }
  return x;
}

/** What a field of the engine arguments accepts. @param {string} path */
function acceptedAt(path) {
  const [head, name, inner] = path.split('.');
  if (head !== 'engine') return LAUNCH[head].accepts;
  if (name === 'timing_model') return 'a finite number of at least 0';
  const f = ENGINE[name];
  return inner === undefined ? f.accepts : /** @type {Record<string, {accepts: string}>} */ (f.object)[inner].accepts;
}

/**
 * What the core refuses of engine arguments.
 * @param {number} code @param {number} field
 * @param {ReadEngine} e
 * @returns {Complaint}
 */
export function engineComplaint(code, field, e) {
  let path = PATHS[field] ?? 'engine';
  const backend = e.backend;
  const only = (/** @type {string} */ accepted) => ({ path: placeOf(e, path), sentence: `${path} is ${found(argument(e, path))}; ${accepted}` });
  if (field === Field.HostOffload || field === Field.KVCacheBytes) {
    const tooMany = code === Code.TooLarge && field === Field.KVCacheBytes;
    path = tooMany ? 'engine.kv_cache_bytes_per_token' : 'engine.native_host_offload';
    return only(tooMany ? 'a product of offloaded blocks, block_size and bytes per token below 2^63 is accepted' : offload(code, backend));
  }
  if (field === Field.DiskOffload) return only(disk(code, e));
  if (field === Field.TotalSlots) {
    if (argument(e, path) === undefined) path = 'engine.block_size';
    return only(`num_gpu_blocks times block_size of at most ${MOST_SLOTS} is accepted`);
  }
  switch (code) {
    case Code.BelowTwo:
      return only(`a whole number of at least 2 is accepted for backend ${backend}`);
    case Code.TooLarge:
      return only(`at most ${MOST[field] ?? 1n << 62n} is accepted`);
    case Code.NeedsChunking:
      return only('true is accepted for backend sglang');
    case Code.NeedsVLLM:
      return only(`1 is accepted for backend ${backend}`);
    case Code.NeedsSGLang:
      return only(`0 is accepted for backend ${backend}`);
    case Code.Exclusive:
      return only('null is accepted with a decode_speedup_ratio other than 1');
    case Code.NeedsEvents:
      return only('true is accepted only together with emit_kv_events');
  }
  if (field === Field.MaxPrefillTokens || field === Field.ChunkedPrefillSize) return only('a whole number of at least 1 is accepted for backend sglang');
  if (field === Field.Conservativeness) return only('a finite number of at least 0 is accepted for backend sglang');
  return only(`${acceptedAt(path)} is accepted`);
}

/** @param {number} code @param {string} backend */
function offload(code, backend) {
  switch (code) {
    case Code.NeedsVLLM:
      return `null is accepted for backend ${backend}`;
    case Code.NeedsPrefixCaching:
      return 'null is accepted without enable_prefix_caching';
    case Code.Exclusive:
      return 'null is accepted with aic_nextn';
    case Code.NotPositive:
      return 'null is accepted without kv_cache_bytes_per_token';
  }
  return 'at most 2147483647 host blocks are accepted';
}

/** @param {number} code @param {ReadEngine} e */
function disk(code, e) {
  switch (code) {
    case Code.NotAggregated:
      return `null is accepted for worker_type ${ROLES[Number(e.pairs['engine.role'] ?? 0)]}`;
    case Code.NeedsHostOffload:
      return 'null is accepted without native_host_offload';
    case Code.NeedsRankLocal:
      return 'null is accepted with native_host_offload of scope cluster_shared; a disk behind shared host memory is not built';
    case Code.Exclusive:
      return 'null is accepted with a dp_size above 1';
    case Code.TakesNoTime:
      return 'a latency_to_first_byte_ms or a limit of the bandwidth of reads is accepted; reads from a disk that take no time are not built';
  }
  return 'at most 2147483647 blocks are accepted';
}

/** Fields of the run around its engines: flag, place, what is accepted. @type {Record<number, [string, string, string]>} */
const RUN = {
  [Field.NumWorkers]: ['num-workers', 'numWorkers', WORKERS],
  [Field.NumPrefillWorkers]: ['num-prefill-workers', 'numPrefillWorkers', WORKERS],
  [Field.PrefillPerNode]: ['prefill-workers-per-node', 'prefillWorkersPerNode', WORKERS],
  [Field.TraceBlockSize]: ['trace-block-size', 'workload.traceBlockSize', 'a whole number from 1 to 2147483647'],
  [Field.ArrivalSpeedup]: ['arrival-speedup-ratio', 'workload.arrivalSpeedup', 'a finite number above 0'],
  [Field.KVEventLag]: ['kv-event-lag-ms', 'router.kvEventLagMs', 'a finite number of at least 0'],
};

/** Sentences of the run that name no value. @type {Record<number, [string, string]>} */
const RUN_SENTENCES = {
  [Field.HostOffload]: ['engine.native_host_offload', 'the engine arguments of a pool have native_host_offload; it is accepted with workers that serve whole requests (--extra-engine-args)'],
  [Field.RouterMode]: ['router.mode', '--router-mode kv_router is not built yet for host memory that all workers share; "scope": "dp_rank_local" in native_host_offload is accepted'],
  [Field.DiskOffload]: ['engine.g3_offload', 'g3_offload in the engine arguments is not built yet for --router-mode kv_router, workers that come and go, or telemetry; it is accepted without them'],
  [Field.Scaling]: ['router.mode', '--scaling-script is given with --router-mode direct, whose workers are named ahead; one of them is accepted'],
  [Field.SLAE2EMs]: ['sla.e2eMs', '--sla-e2e-ms is given with --sla-ttft-ms or --sla-itl-ms; either kind is accepted alone'],
};

/**
 * What the core refuses of a run around its engines, null if it is of an engine.
 * @param {number} code @param {number} field
 * @param {Plan} plan
 * @returns {Complaint | null}
 */
export function runComplaint(code, field, plan) {
  if (code === Code.Unlike && plan.prefill !== null) return unlike(plan.prefill, plan.engine);
  const ofRun = field === Field.HostOffload ? code === Code.NeedsAggregated : field === Field.DiskOffload ? code === Code.Exclusive && plan.engine.pairs['engine.dp_size'] === undefined : true;
  if (field in RUN_SENTENCES && ofRun) return { path: RUN_SENTENCES[field][0], sentence: RUN_SENTENCES[field][1] };
  if (!(field in RUN)) return null;
  let [flag, path, accepted] = RUN[field];
  if (field === Field.NumWorkers && plan.pools) [flag, path] = ['num-decode-workers', 'numDecodeWorkers'];
  const x = plan.values.get(flag);
  return { path, sentence: `--${flag} is ${typeof x === 'number' ? sentenceFloat(x) : x}; ${accepted} is accepted` };
}

/** What two pools have to agree on. @param {ReadEngine} prefill @param {ReadEngine} decode @returns {Complaint} */
function unlike(prefill, decode) {
  if (prefill.backend !== decode.backend) {
    return { path: 'engine.type', sentence: `--prefill-engine-args have the backend ${prefill.backend} and --decode-engine-args ${decode.backend}; the same backend is accepted` };
  }
  const [a, b] = [prefill.pairs['engine.block_size'], decode.pairs['engine.block_size']];
  return { path: 'engine.block_size', sentence: `--prefill-engine-args have the block size ${a} and --decode-engine-args ${b}; the same size is accepted` };
}

/** What Synthesize takes by key of its frame: flag, place, accepted. @type {Record<string, [string, string, string]>} */
const SYNTHETIC = {
  input_tokens: ['input-tokens', 'workload.inputTokens', 'a whole number from 1 to 2147483647'],
  output_tokens: ['output-tokens', 'workload.outputTokens', 'a whole number from 1 to 2147483647'],
  sessions: ['request-count', 'workload.requestCount', 'a whole number from 1 to 2147483647'],
  turns: ['turns-per-session', 'workload.turnsPerSession', 'a whole number from 1 to 2147483647'],
  rate_per_s: ['request-rate', 'workload.requestRate', 'a finite number above 0'],
  interval_ms: ['arrival-interval-ms', 'workload.arrivalIntervalMs', '0 or a finite number of at least 1e-305'],
  prefix_ratio: ['shared-prefix-ratio', 'workload.sharedPrefixRatio', 'a number from 0 to 1'],
  turn_delay_ms: ['inter-turn-delay-ms', 'workload.interTurnDelayMs', 'a finite number of at least 0'],
};

/** Codes of BadTrace up to this one are of options that do not go with a trace. */
const LAST_OPTION = 5;

/**
 * The complaint that a refusal of core.wasm amounts to, null if nobody but the
 * program itself is at fault.
 * @param {Refusal} refusal
 * @param {Plan} plan
 * @param {string} [format] of the trace
 * @returns {Complaint | null}
 */
export function complaintOf(refusal, plan, format = '') {
  const p = refusal.pairs;
  const ofTrace = (/** @type {string} */ sentence) => ({ path: 'trace', sentence, ...(Number(p.line) > 0 ? { line: Number(p.line) } : {}) });
  switch (refusal.code) {
    case Refused.BadConfig: {
      const [code, field] = [Number(p.code), Number(p.field)];
      return runComplaint(code, field, plan) ?? engineComplaint(code, field, plan.engine);
    }
    case Refused.BadRouter:
      return plan.router?.refusal(Number(p.code), Number(p.field)) ?? null;
    case Refused.BadLine:
      return ofTrace(lineSentence(p, format));
    case Refused.BadRow:
      return plan.synthetic ? { path: 'workload', sentence: syntheticSentence(p) } : ofTrace(rowSentence(p, plan.traceBlockSize, format));
    case Refused.BadTrace: {
      const sentence = traceSentence(p, format);
      return Number(p.code) <= LAST_OPTION ? { path: 'trace', sentence } : ofTrace(sentence);
    }
    case Refused.BadGraph:
      return ofTrace(graphSentence(p));
    case Refused.BadRecord:
      return ofTrace(recordSentence(p));
    case Refused.BadObject:
      return ofTrace(objectSentence(p));
    case Refused.NotInRange: {
      const known = SYNTHETIC[String(p.name)];
      if (!plan.synthetic || known === undefined) return null;
      const [flag, path, accepted] = known;
      const x = plan.values.get(flag);
      return { path, sentence: `--${flag} is ${typeof x === 'number' ? sentenceFloat(x) : x}; ${accepted} is accepted` };
    }
  }
  return null;
}

/** Why a run has failed. @param {Pairs} p an answer of Step */
export function failureSentence(p) {
  const ms = sentenceFloat(Number(p.now_ms));
  if ('router.code' in p) return routerSentence(p, ms);
  if (p.nobody === true) return `at ${ms} ms a request arrives and no worker serves; a --scaling-script that keeps at least one worker active is accepted`;
  if (p.endless === true) {
    return `--parity: the reference repeats a pass at ${ms} ms for ever: a request of a worker with ${p.in_flight} in flight has outgrown the KV pool; without --parity it fails alone`;
  }
  return `replay invariant violated: offline replay detected an effect-free zero-duration pass with ${p.in_flight} in-flight requests remaining`;
}

const LIMITS = ['', 'requests', 'raw_isl_tokens', 'cached_tokens'];
const WHY = ['', 'its parent is not known', 'it continues itself', 'a block is not known'];

/** Why the KV router could not go on. @param {Pairs} p @param {string} ms */
function routerSentence(p, ms) {
  const router = (/** @type {string} */ key) => p[`router.${key}`];
  switch (Number(router('code'))) {
    case 2:
      return `at ${ms} ms: router policy class "${router('class')}" queue ${LIMITS[Number(router('limit'))]} limit reached (current=${router('have')}, limit=${router('most')})`;
    case 3:
      return `at ${ms} ms: the cost of a worker is not a finite number; smaller weights in --router-config are accepted`;
    case 4:
    case 5: {
      const blocks = `count=${router('count')} first=${router('first')} last=${router('last')}`;
      const kind = Number(router('event'));
      const data = kind === 0 ? `stored parent=${router('has_parent') === true ? router('parent') : 'none'} ${blocks}` : kind === 1 ? `removed ${blocks}` : 'cleared';
      return `at ${ms} ms: failed to apply replay KV event worker=${router('worker')} dp_rank=${router('rank')} event_id=${router('event_id')} data=${data}: ${WHY[Number(router('why'))] ?? ''}`;
    }
  }
  return `at ${ms} ms: no endpoints available to route work`;
}
