// @ts-check
// A scenario as the frames that describe it to core.wasm, and as the command line
// that repeats it in a shell. What cannot be right is refused with the sentence
// of the command line.

import { ReadEngine, canonical, wholeOf } from './engine.js';
import { ReadRouter } from './router.js';
import { ComplaintList, quote } from './wording.js';
import { sentenceFloat } from './spell.js';

/** @typedef {import('./msgpack.js').Pairs} Pairs */
/** @typedef {import('./msgpack.js').Value} Value */
/** @typedef {import('./types.js').Scenario} Scenario */
/** @typedef {import('./types.js').SyntheticWorkload} SyntheticWorkload */
/** @typedef {import('./types.js').TraceOptions} TraceOptions */
/** @typedef {import('./timing.js').Table} Table */

export const FORMATS = /** @type {const} */ (['mooncake', 'mooncake-delta', 'agentic_mooncake', 'applied_compute_agentic', 'dynamo', 'weka', 'azure', 'burstgpt']);
/** Modes in the order of their values, as scenarios and as flags have them. */
export const ROUTER_MODES = ['round_robin', 'kv_router', 'random', 'power_of_two', 'least_loaded'];
const MODE_FLAGS = ['round_robin', 'kv_router', 'random', 'power-of-two', 'least-loaded'];
const SHARINGS = ['none', 'pair', 'node'];
const QUEUES = ['fcfs', 'lcfs', 'wspt'];
const BASES = ['auto', 'absolute', 'relative'];
const CANONICAL_SEED = 0xd1a05eedn;
const SYNTHETIC_SEED = 42n;
const MOST_INT = (1n << 63n) - 1n;
const MOST_32 = 0xffffffffn;

/**
 * A flag of replay and the place of its value in a scenario.
 * @typedef {{flag: string, place: string, kind: 'whole' | 'seed' | 'real' | 'choice' | 'text', words?: readonly string[], flags?: string[]}} Flag
 */

/** @param {string} flag @param {string} place @param {Flag['kind']} kind @returns {Flag} */
const flag = (flag, place, kind) => ({ flag, place, kind });

/** @type {Flag[]} */
const TRACE_FLAGS = [
  { ...flag('trace-format', 'workload.format', 'choice'), words: FORMATS },
  flag('trace-block-size', 'workload.traceBlockSize', 'whole'),
  flag('agentic-lanes', 'workload.agenticLanes', 'whole'),
  flag('execution-model', 'workload.executionModel', 'text'),
  { ...flag('weka-nested-timestamp-basis', 'workload.wekaNestedTimestampBasis', 'choice'), words: BASES },
  flag('trace-shared-prefix-ratio', 'workload.traceSharedPrefixRatio', 'real'),
  flag('trace-num-prefix-groups', 'workload.traceNumPrefixGroups', 'whole'),
];

/** @type {Flag[]} */
const SYNTHETIC_FLAGS = [
  flag('input-tokens', 'workload.inputTokens', 'whole'),
  flag('output-tokens', 'workload.outputTokens', 'whole'),
  flag('request-count', 'workload.requestCount', 'whole'),
  flag('request-rate', 'workload.requestRate', 'real'),
  flag('arrival-interval-ms', 'workload.arrivalIntervalMs', 'real'),
  flag('arrival-seed', 'workload.arrivalSeed', 'seed'),
  flag('turns-per-session', 'workload.turnsPerSession', 'whole'),
  flag('inter-turn-delay-ms', 'workload.interTurnDelayMs', 'real'),
  flag('shared-prefix-ratio', 'workload.sharedPrefixRatio', 'real'),
  flag('num-prefix-groups', 'workload.numPrefixGroups', 'whole'),
];

/** @type {Flag[]} */
const RUN_FLAGS = [
  flag('replay-concurrency', 'workload.concurrency', 'whole'),
  flag('arrival-speedup-ratio', 'workload.arrivalSpeedup', 'real'),
  flag('max-sim-time-ms', 'maxSimTimeMs', 'real'),
  flag('num-workers', 'numWorkers', 'whole'),
  flag('num-prefill-workers', 'numPrefillWorkers', 'whole'),
  flag('num-decode-workers', 'numDecodeWorkers', 'whole'),
  { ...flag('transfer-sharing', 'transferSharing', 'choice'), words: SHARINGS },
  flag('prefill-workers-per-node', 'prefillWorkersPerNode', 'whole'),
  { ...flag('router-mode', 'router.mode', 'choice'), words: ROUTER_MODES, flags: MODE_FLAGS },
  flag('router-seed', 'router.seed', 'seed'),
  flag('kv-event-lag-ms', 'router.kvEventLagMs', 'real'),
  flag('sla-ttft-ms', 'sla.ttftMs', 'real'),
  flag('sla-itl-ms', 'sla.itlMs', 'real'),
  flag('sla-e2e-ms', 'sla.e2eMs', 'real'),
];

/** A mode of routing as its flag has it. @param {string} mode */
export const modeFlag = (mode) => MODE_FLAGS[ROUTER_MODES.indexOf(mode)];

/** Flags by the place of their value. @param {Scenario} s */
export function flagsOf(s) {
  return [...(s.workload?.kind === 'synthetic' ? SYNTHETIC_FLAGS : TRACE_FLAGS), ...RUN_FLAGS];
}

/** The value at a place of a scenario. @param {Scenario} s @param {string} place @returns {unknown} */
export function valueAt(s, place) {
  /** @type {unknown} */
  let x = s;
  for (const key of place.split('.')) x = x === null || x === undefined ? undefined : /** @type {Record<string, unknown>} */ (x)[key];
  return x === null ? undefined : x;
}

/** @param {Scenario} s */
export const hasPools = (s) => s.prefillEngine !== undefined && s.prefillEngine !== null;

/** What a flag's value is spelt as. @param {unknown} x */
const spelt = (x) => (typeof x === 'number' ? (Object.is(x, -0) ? '-0' : JSON.stringify(x)) : String(x));

/** Durations that stand in the engine arguments. @param {Scenario} s */
function timingModel(s) {
  const t = s.timing;
  if (t?.kind !== 'fixed') return undefined;
  return { type: 'fixed', ...(t.prefillMs === undefined ? {} : { prefill_ms: t.prefillMs }), ...(t.decodeMs === undefined ? {} : { decode_ms: t.decodeMs }) };
}

/** A scenario, read and found to be a run that core.wasm may be asked for. */
export class Plan {
  /**
   * @param {Scenario} s
   * @param {Table | null} table durations from a file, if the scenario names one
   * @throws {import('./wording.js').ComplaintError}
   */
  constructor(s, table) {
    this.scenario = s;
    this.table = table;
    this.complaints = new ComplaintList();
    /** Values of flags that are given. @type {Map<string, Value>} */
    this.values = new Map();
    this.synthetic = s.workload?.kind === 'synthetic';
    this.pools = hasPools(s);
    this.readFlags();
    this.checkSource();
    this.checkPools();
    this.prefill = this.pools ? this.readEngine('prefillEngine', 'prefill', '--prefill-engine-args') : null;
    this.engine = this.pools ? this.readEngine('engine', 'decode', '--decode-engine-args') : this.readEngine('engine', 'aggregated', '--extra-engine-args');
    /** @type {ReadRouter | null} */
    this.router = null;
    this.checkRouting();
    this.checkRun();
    this.complaints.settle();
  }

  /** @param {string} place @param {string} sentence */
  complain(place, sentence) {
    this.complaints.add(place, sentence);
  }

  /** Whether a flag would be given. @param {string} flag */
  given(flag) {
    return this.values.has(flag);
  }

  /** @param {string} flag @returns {number} */
  number(flag) {
    return Number(this.values.get(flag));
  }

  /** Tokens behind each hash id of a trace that does not say it. */
  get traceBlockSize() {
    return Number(this.values.get('trace-block-size') ?? 512);
  }

  /** A value that its flag does not take. @param {string} place @param {string} flag @param {unknown} x @param {string} accepted */
  refuse(place, flag, x, accepted) {
    this.complain(place, `--${flag} is ${typeof x === 'number' ? sentenceFloat(x) : x}; ${accepted} is accepted`);
  }

  readFlags() {
    if (typeof this.scenario.workload !== 'object' || this.scenario.workload === null) {
      this.complain('workload', 'no workload is given; a trace file, or --input-tokens, --output-tokens and --request-count, are accepted');
      this.complaints.settle();
    }
    for (const f of flagsOf(this.scenario)) {
      const x = valueAt(this.scenario, f.place);
      if (x === undefined) continue;
      const value = read(f, x);
      if (value !== undefined) this.values.set(f.flag, value);
      else this.complain(f.place, `--${f.flag} is ${quote(spelt(x))}; ${accepts(f)} is accepted`);
    }
  }

  checkSource() {
    if (!this.synthetic) return;
    const missing = ['input-tokens', 'output-tokens', 'request-count'].filter((f) => !this.given(f) && !this.refused(f));
    if (missing.length > 0) this.complain('workload', `a synthetic workload needs --${missing.join(' and --')} as well`);
    const given = ['replay-concurrency', 'request-rate', 'arrival-interval-ms'].filter((f) => this.given(f) || this.refused(f));
    const accepted = 'exactly one of --replay-concurrency, --request-rate and --arrival-interval-ms is accepted';
    if (given.length === 0) this.complain('workload', `nothing says when the requests of the synthetic workload arrive; ${accepted}`);
    if (given.length > 1) this.complain('workload', `--${given.join(' and --')} are given; ${accepted}`);
    if (this.given('max-sim-time-ms')) this.complain('maxSimTimeMs', '--max-sim-time-ms is given with a synthetic workload; it is accepted with a trace');
  }

  /** Whether a flag's value has been complained about. @param {string} name */
  refused(name) {
    const place = flagsOf(this.scenario).find((f) => f.flag === name)?.place;
    return this.complaints.list.some((c) => c.path === place);
  }

  checkPools() {
    const s = this.scenario;
    const workers = ['num-prefill-workers', 'num-decode-workers'];
    if (this.pools && this.given('num-workers') && this.number('num-workers') !== 1) {
      this.complain('numWorkers', `--num-workers is ${this.values.get('num-workers')}, but the workers are in two pools; --num-prefill-workers and --num-decode-workers are accepted`);
    }
    for (const f of workers) {
      if (!this.given(f)) continue;
      const place = f === workers[0] ? 'numPrefillWorkers' : 'numDecodeWorkers';
      const n = this.number(f);
      if (!this.pools && n !== 1) {
        this.complain(place, `--${f} is ${n}, but there is no pool for it; --num-workers, or --prefill-engine-args and --decode-engine-args, are accepted`);
      } else if (this.pools && n < 1) {
        this.refuse(place, f, this.values.get(f), 'a whole number from 1 to 1048576');
      }
    }
    const sharing = s.transferSharing ?? 'none';
    const perNode = this.given('prefill-workers-per-node');
    if (!this.pools && (sharing !== 'none' || perNode)) {
      this.complain(perNode ? 'prefillWorkersPerNode' : 'transferSharing', '--transfer-sharing and --prefill-workers-per-node are for workers in two pools; --prefill-engine-args and --decode-engine-args are accepted with them');
    } else if (perNode && sharing !== 'node') {
      this.complain('prefillWorkersPerNode', `--prefill-workers-per-node is for --transfer-sharing node, and it is ${sharing}`);
    }
  }

  /** @param {'engine' | 'prefillEngine'} at @param {string} role @param {string} flag */
  readEngine(at, role, flag) {
    const args = this.scenario[at] ?? {};
    const timing = timingModel(this.scenario);
    if (timing !== undefined && 'timing_model' in args) this.complain(`${at}.timing_model`, 'engine.timing_model says how long passes take, and so does timing; one is accepted');
    const read = new ReadEngine(args, at, this.complaints, { role, flag, timing });
    if (this.table !== null) this.table.use(read, this.complaints);
    read.chunk();
    return read;
  }

  checkRouting() {
    const s = this.scenario;
    const mode = s.router?.mode ?? 'round_robin';
    if (this.given('kv-event-lag-ms') && mode !== 'kv_router') {
      this.complain('router.kvEventLagMs', `--kv-event-lag-ms is for --router-mode kv_router, and it is ${modeFlag(mode)}`);
    }
    const config = s.router?.config ?? {};
    this.router = new ReadRouter(config, this.complaints);
    if (mode === 'kv_router' && this.router.predicts && this.table?.kind !== 'grid') {
      this.complain('router.config.router_prefill_load_model', 'router_prefill_load_model predicts how long prompts take, which only a grid tells; "none", --perf-grid, or --aic-backend, --aic-system and --aic-model-path, are accepted');
    }
    if (this.pools && mode !== 'round_robin' && mode !== 'kv_router') {
      this.complain('router.mode', `--router-mode ${modeFlag(mode)} is for workers that serve whole requests; round_robin or kv_router is accepted with two pools (--prefill-engine-args)`);
    }
  }

  checkRun() {
    this.atLeastOne('replay-concurrency', 'workload.concurrency');
    this.atLeastOne('agentic-lanes', 'workload.agenticLanes');
    if (this.given('agentic-lanes') && this.given('replay-concurrency')) {
      this.complain('workload.agenticLanes', '--agentic-lanes is given with --replay-concurrency; one of them is accepted');
    }
    const share = this.values.get('trace-shared-prefix-ratio');
    if (share !== undefined && !(Number(share) >= 0 && Number(share) <= 1)) this.refuse('workload.traceSharedPrefixRatio', 'trace-shared-prefix-ratio', share, 'a number from 0 to 1');
    this.uint32('trace-num-prefix-groups', 'workload.traceNumPrefixGroups');
    this.uint32('num-prefix-groups', 'workload.numPrefixGroups');
    const model = this.values.get('execution-model');
    if (typeof model === 'string' && model.trim() === '') this.complain('workload.executionModel', '--execution-model is blank; a name is accepted');
    const limit = this.values.get('max-sim-time-ms');
    if (limit !== undefined && !(Number(limit) >= 0)) this.refuse('maxSimTimeMs', 'max-sim-time-ms', limit, 'a finite number of at least 0');
    for (const [f, place] of [['sla-ttft-ms', 'sla.ttftMs'], ['sla-itl-ms', 'sla.itlMs'], ['sla-e2e-ms', 'sla.e2eMs']]) {
      const ms = this.values.get(f);
      if (ms !== undefined && !(Number(ms) > 0)) this.refuse(place, f, ms, 'a finite number above 0');
    }
  }

  /** @param {string} flag @param {string} place */
  atLeastOne(flag, place) {
    const n = this.values.get(flag);
    if (n !== undefined && BigInt(/** @type {bigint} */ (n)) < 1n) this.refuse(place, flag, n, 'a whole number of at least 1');
  }

  /** @param {string} flag @param {string} place */
  uint32(flag, place) {
    const n = this.values.get(flag);
    if (n !== undefined && (/** @type {bigint} */ (n) < 0n || /** @type {bigint} */ (n) > MOST_32)) this.refuse(place, flag, n, 'a whole number from 0 to 4294967295');
  }

  /** The request of Configure. @returns {Pairs} */
  configure() {
    /** @type {Pairs} */
    const p = { ...this.engine.frame('engine'), ...this.routing(), ...this.pool(), capture_requests: true };
    /** @type {[string, string][]} */
    const same = [
      ['trace-block-size', 'trace_block_size'], ['replay-concurrency', 'concurrency'], ['arrival-speedup-ratio', 'arrival_speedup'],
      ['max-sim-time-ms', 'max_sim_time_ms'], ['sla-ttft-ms', 'sla.ttft_ms'], ['sla-itl-ms', 'sla.itl_ms'], ['sla-e2e-ms', 'sla.e2e_ms'],
      [this.pools ? 'num-decode-workers' : 'num-workers', 'num_workers'],
    ];
    for (const [f, key] of same) {
      const x = this.values.get(f);
      if (x !== undefined) p[key] = x;
    }
    Object.assign(p, this.reading());
    if (this.scenario.parity) p.parity = true;
    if (this.scenario.plain) p.plain = true;
    return p;
  }

  /** Keys of how a trace is read. @returns {Pairs} */
  reading() {
    if (this.synthetic) return {};
    const v = this.values;
    return {
      format: v.has('trace-format') ? this.number('trace-format') + 1 : 0, want_block_size: v.get('trace-block-size') ?? 0, lanes: v.get('agentic-lanes') ?? 0,
      shared_prefix_ratio: v.get('trace-shared-prefix-ratio') ?? 0, prefix_groups: v.get('trace-num-prefix-groups') ?? 0, execution_model: v.get('execution-model') ?? '',
      nested_basis: v.get('weka-nested-timestamp-basis') ?? 0,
    };
  }

  /** Keys of the pool that computes prompts. @returns {Pairs} */
  pool() {
    if (this.prefill === null) return {};
    return {
      ...this.prefill.frame('prefill.engine'),
      'prefill.workers': this.values.get('num-prefill-workers') ?? 1,
      sharing: this.values.get('transfer-sharing') ?? 0,
      prefill_per_node: this.values.get('prefill-workers-per-node') ?? 1,
    };
  }

  /** Keys of the router. @returns {Pairs} */
  routing() {
    /** @type {Pairs} */
    const p = { 'routing.mode': this.values.get('router-mode') ?? 0, 'routing.seed': this.values.get('router-seed') ?? CANONICAL_SEED };
    if (!this.routed) return p;
    Object.assign(p, this.router?.pairs, { 'routing.event_lag_ms': this.values.get('kv-event-lag-ms') ?? 0 });
    const policy = /** @type {{router_queue_policy?: unknown} | undefined} */ ((this.prefill ?? this.engine).args.dynamo)?.router_queue_policy;
    if (typeof policy === 'string') p['routing.router.queue_policy'] = QUEUES.indexOf(policy);
    return p;
  }

  /** Whether there is a KV router. */
  get routed() {
    return this.values.get('router-mode') === 1;
  }

  /** The request of Synthesize. @returns {Pairs} */
  synthesize() {
    /** @type {Pairs} */
    const p = { arrival: this.given('request-rate') ? 1 : this.given('arrival-interval-ms') ? 2 : 0, arrival_seed: SYNTHETIC_SEED, turns: 1 };
    /** @type {[string, string][]} */
    const same = [
      ['input-tokens', 'input_tokens'], ['output-tokens', 'output_tokens'], ['request-count', 'sessions'], ['turns-per-session', 'turns'],
      ['request-rate', 'rate_per_s'], ['arrival-interval-ms', 'interval_ms'], ['arrival-seed', 'arrival_seed'],
      ['inter-turn-delay-ms', 'turn_delay_ms'], ['shared-prefix-ratio', 'prefix_ratio'], ['num-prefix-groups', 'prefix_groups'],
    ];
    for (const [f, key] of same) {
      const x = this.values.get(f);
      if (x !== undefined) p[key] = x;
    }
    return p;
  }
}

/** @param {Flag} f @param {unknown} x @returns {Value | undefined} */
function read(f, x) {
  switch (f.kind) {
    case 'whole': {
      const n = typeof x === 'number' && x < 0 ? wholeOf(-x) : wholeOf(x);
      if (n === null) return undefined;
      const signed = typeof x === 'number' && x < 0 ? -n : n;
      return signed > MOST_INT ? MOST_INT : signed < -MOST_INT - 1n ? -MOST_INT - 1n : signed;
    }
    case 'seed': {
      const n = typeof x === 'string' && /^\d+$/.test(x) ? BigInt(x) : wholeOf(x);
      return n === null || n >= 1n << 64n ? undefined : n;
    }
    case 'real':
      return typeof x === 'number' ? x : undefined;
    case 'choice': {
      const i = f.words?.indexOf(/** @type {string} */ (x)) ?? -1;
      return i < 0 ? undefined : i;
    }
  }
  return typeof x === 'string' ? x : undefined;
}

/** What a flag takes. @param {Flag} f */
function accepts(f) {
  switch (f.kind) {
    case 'whole':
      return 'a whole number';
    case 'seed':
      return 'a whole number from 0 to 18446744073709551615';
    case 'real':
      return 'a number';
    case 'choice':
      return (f.flags ?? f.words ?? []).join(' or ');
  }
  return 'a text';
}

/**
 * The command line that repeats a scenario, as words and as one text for a
 * shell. The trace and a file of durations have the names they have in the
 * scenario, unless paths say otherwise.
 * @param {Scenario} s
 * @param {{trace?: string | string[], timing?: string}} [paths]
 */
export function commandLine(s, paths = {}) {
  const words = ['replay'];
  const w = s.workload;
  if (w?.kind === 'sample' || w?.kind === 'file') words.push(...[paths.trace ?? (w.kind === 'sample' ? w.sample : (w.name ?? 'trace.jsonl'))].flat());
  for (const f of flagsOf(s)) {
    const x = valueAt(s, f.place);
    if (x === undefined) continue;
    const i = f.words?.indexOf(/** @type {string} */ (x)) ?? -1;
    words.push(`--${f.flag}`, f.flags !== undefined && i >= 0 ? f.flags[i] : spelt(x));
  }
  const timing = timingModel(s);
  if (hasPools(s)) {
    words.push('--prefill-engine-args', JSON.stringify(canonical(s.prefillEngine ?? {}, { role: 'prefill', timing })));
    words.push('--decode-engine-args', JSON.stringify(canonical(s.engine ?? {}, { role: 'decode', timing })));
  } else {
    const args = JSON.stringify(canonical(s.engine ?? {}, { timing }));
    if (args !== '{}') words.push('--extra-engine-args', args);
  }
  if (s.timing?.kind === 'grid') words.push('--perf-grid', paths.timing ?? s.timing.name);
  if (s.timing?.kind === 'npz') words.push('--planner-profile-data', paths.timing ?? s.timing.name);
  if (s.router?.config !== undefined) words.push('--router-config', JSON.stringify(s.router.config));
  if (s.parity) words.push('--parity');
  if (s.plain) words.push('--engine-impl', 'plain');
  return { words, text: words.map(shellWord).join(' ') };
}

/** A word as shells read it. @param {string} w */
function shellWord(w) {
  return /^[A-Za-z0-9_./:=,+@%-]+$/.test(w) ? w : `'${w.replaceAll("'", "'\\''")}'`;
}
