// @ts-check
// What a run found, as the command line writes it: the report (--report-json),
// a line per request (--report-jsonl), and a table of requests for spreadsheets.
// The bytes are the same as there.

import { agentEntries, nameAt, nodeStart } from './agents.js';
import { STATUS_WORDS } from './words.js';
import { jsonText, lineFloat, pythonFloat } from './spell.js';
import { floats } from './msgpack.js';

/** @typedef {import('./msgpack.js').Pairs} Pairs */
/** @typedef {import('./types.js').Summary} Summary */
/** @typedef {import('./types.js').Distribution} Distribution */
/** @typedef {import('./types.js').Result} Result */

const utf8 = new TextEncoder();

/** Whole numbers of a summary that stand in every report. */
const WHOLE = [
  'committed_prefill_tokens', 'num_requests', 'completed_requests', 'rejected_requests', 'failed_requests', 'cancelled_requests',
  'unfinished_requests', 'total_input_tokens', 'total_output_tokens', 'prefill_gpus_per_worker', 'decode_gpus_per_worker',
  'num_ttft_samples', 'num_tpot_samples', 'num_e2e_latency_samples',
];

const REAL = [
  'duration_ms', 'request_throughput_rps', 'input_throughput_tok_s', 'output_throughput_tok_s', 'total_throughput_tok_s',
  'prefill_worker_seconds', 'decode_worker_seconds', 'gpu_hours', 'prefix_cache_reused_ratio', 'first_admission_prefix_cache_reused_ratio',
];

/** Distributions and the unit in the names of their numbers. */
const DISTRIBUTIONS = /** @type {const} */ ([
  ['ttft_ms', 'ttft', '_ms'], ['ttst_ms', 'ttst', '_ms'], ['tpot_ms', 'tpot', '_ms'], ['itl_ms', 'itl', '_ms'], ['e2e_latency_ms', 'e2e_latency', '_ms'],
  ['output_token_throughput_per_user', 'output_token_throughput_per_user', ''],
]);
const STATISTICS = /** @type {const} */ (['mean', 'min', 'max', 'median', 'p75', 'p90', 'p95', 'p99', 'std']);

/** Keys whose values come from the machine's clock. */
export const CLOCKED = ['wall_time_ms', 'processed_tokens_per_s', 'processed_output_tokens_per_s'];

/** An answer of Summarize. @param {Pairs} answer @returns {Summary} */
export function readSummary(answer) {
  /** @type {Summary} */
  const s = { numbers: {}, hasSLA: answer.has_sla === true, distributions: {} };
  const columns = new Set([...DISTRIBUTIONS.map(([key]) => /** @type {string} */ (key)), 'agents.latency_ms']);
  for (const [key, value] of Object.entries(answer)) {
    if (typeof value === 'number') s.numbers[key] = value;
    else if (typeof value === 'bigint') s.numbers[key] = Number(value);
    else if (value instanceof Uint8Array && columns.has(key)) s.distributions[key] = readDistribution(value);
  }
  return s;
}

/** @param {Uint8Array} bin @returns {Distribution} */
function readDistribution(bin) {
  const column = floats(bin);
  /** @type {Record<string, number>} */
  const d = {};
  STATISTICS.forEach((name, i) => (d[name] = column[i]));
  return /** @type {Distribution} */ (/** @type {unknown} */ (d));
}

/** Sorts as bytes do; names are ASCII. @param {[string, string]} a @param {[string, string]} b */
const byName = (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);

/** Values that are spelt already as an object with sorted keys. @param {[string, string][]} entries @param {number} depth */
function object(entries, depth) {
  const indent = '  '.repeat(depth + 1);
  return `{${entries.sort(byName).map(([k, v]) => `\n${indent}"${k}": ${v}`).join(',')}\n${'  '.repeat(depth)}}`;
}

/** Keys of a report with their values spelt. @param {Summary} s @param {number} wallMs @param {Result['graph']} graph @returns {[string, string][]} */
function entries(s, wallMs, graph) {
  const n = s.numbers;
  const whole = (/** @type {string} */ key) => /** @type {[string, string]} */ ([key, String(n[key])]);
  const real = (/** @type {string} */ key) => /** @type {[string, string]} */ ([key, pythonFloat(n[key])]);
  const processed = n.total_input_tokens + n.total_output_tokens;
  /** @type {[string, string][]} */
  const e = [
    ...WHOLE.map(whole), ...REAL.map(real),
    ['wall_time_ms', pythonFloat(wallMs)],
    ['processed_tokens', String(processed)],
    ['processed_tokens_per_s', pythonFloat((processed / wallMs) * 1000)],
    ['processed_output_tokens_per_s', pythonFloat((n.total_output_tokens / wallMs) * 1000)],
    ['kv_eviction_policy', '"lru"'], ['power_w', 'null'], ['power_coverage', 'null'],
  ];
  if (s.hasSLA) e.push(whole('goodput_completed_requests'), real('goodput_request_throughput_rps'), real('goodput_output_throughput_tok_s'));
  if ('shared_host.capacity_blocks' in n) e.push(['g2_domains', sharedHost(n)]);
  if ('disk.lookup_probes' in n) e.push(['g3_offload', disk(n)]);
  if (graph !== null) e.push(...agentEntries(s, graph, graph.target));
  for (const [key, name, unit] of DISTRIBUTIONS) {
    for (const statistic of STATISTICS) e.push([`${statistic}_${name}${unit}`, pythonFloat(s.distributions[key][statistic])]);
  }
  return e;
}

/** @param {Record<string, number>} n */
function sharedHost(n) {
  const names = ['capacity_blocks', 'resident_blocks', 'used_blocks'];
  const pool = object(names.map((name) => [name, String(n[`shared_host.${name}`])]), 2);
  return `[\n    ${pool}\n  ]`;
}

/** @param {Record<string, number>} n */
function disk(n) {
  const names = ['lookup_probes', 'lookup_hits', 'lookup_pending', 'evictions', 'cross_worker_read_blocks', 'resident_blocks', 'pending_blocks'];
  /** @type {[string, string][]} */
  const e = names.map((name) => [name, String(n[`disk.${name}`])]);
  for (const way of ['read', 'write']) {
    const whole = ['submitted_jobs', 'completed_jobs', 'completed_bytes'].map((name) => /** @type {[string, string]} */ ([name, String(n[`disk.${way}.${name}`])]));
    e.push([way, object([...whole, ['cancelled_jobs', '0'], ['transfer_ms', pythonFloat(n[`disk.${way}.transfer_ms`])]], 2)]);
  }
  if (n['disk.bypassed_restores'] > 0) e.push(['bypassed_restores', String(n['disk.bypassed_restores'])]);
  return object(e, 1);
}

/**
 * The report as replay --report-json writes it.
 * @param {Summary} s @param {number} wallMs @param {Result['graph']} graph of agents
 * @returns {Uint8Array}
 */
export function reportJSON(s, wallMs, graph) {
  return utf8.encode(object(entries(s, wallMs, graph), 0) + '\n');
}

/** Turns by session and turn, from 1 on: the numbers of requests. @param {Result['outline']} o */
export function ordinals(o) {
  const numbers = new Int32Array(o.session.length);
  let n = 0;
  for (const first of o.first) {
    for (let t = first; t >= 0; t = o.next[t]) numbers[t] = ++n;
  }
  return numbers;
}

/** The id of a session. @param {Result['outline']} o @param {number} session */
export function sessionID(o, session) {
  return nameAt({ text: o.ids, ends: o.idEnds }, session);
}

/** The id of the request with a number. @param {number} ordinal */
export function requestID(ordinal) {
  return `00000000-0000-0000-0000-${ordinal.toString(16).padStart(12, '0')}`;
}

/** Records in order of arrival; those that arrive together in order of their ids. @param {Result} r */
export function byArrival(r) {
  const number = ordinals(r.outline);
  const { arrival_ms: at, turn } = r.records;
  return { number, order: Int32Array.from(turn.keys()).sort((a, b) => at[a] - at[b] || number[turn[a]] - number[turn[b]]) };
}

/** Latencies of a record; NaN where an end is not there, never below 0. @param {Result['records']} c @param {number} i */
export function latencies(c, i) {
  const span = (/** @type {number} */ from, /** @type {number} */ to) => (to - from < 0 ? 0 : to - from);
  const [arrival, first, second, last] = [c.arrival_ms[i], c.first_token_ms[i], c.second_token_ms[i], c.last_token_ms[i]];
  return {
    ttft_ms: span(arrival, first),
    ttst_ms: span(first, second),
    e2e_latency_ms: span(arrival, last),
    itl_ms: c.output_length[i] < 2 ? NaN : span(first, last) / (c.output_length[i] - 1),
  };
}

/**
 * The lines of the requests as replay --report-jsonl writes them.
 * @param {Result} r
 * @returns {Blob}
 */
export function requestsJSONL(r) {
  const { number, order } = byArrival(r);
  const starts = admissionStarts(r.records);
  /** @type {string[]} */
  const parts = [];
  let part = '';
  for (const i of order) {
    part += requestLine(r, i, number[r.records.turn[i]], starts[i]);
    if (part.length > 1 << 20) {
      parts.push(part);
      part = '';
    }
  }
  return new Blob([...parts, part], { type: 'application/x-ndjson' });
}

/** Where the admissions of each record begin. @param {Result['records']} c */
export function admissionStarts(c) {
  const starts = new Int32Array(c.turn.length);
  let at = 0;
  for (let i = 0; i < starts.length; i++) {
    starts[i] = at;
    at += c.admission_count[i];
  }
  return starts;
}

/** @param {Result} r @param {number} i record @param {number} ordinal @param {number} start of its admissions */
function requestLine(r, i, ordinal, start) {
  const c = r.records;
  const turn = c.turn[i];
  const ms = lineFloat;
  const l = latencies(c, i);
  return (
    `{${lineStart(r, turn)},"uuid":"${requestID(ordinal)}","arrival_time_ms":${ms(c.arrival_ms[i])},"dispatched_at_ms":${r.graph === null ? 'null' : ms(c.arrival_ms[i])},"first_admit_ms":${ms(c.first_admit_ms[i])}` +
    `,"terminal_time_ms":${ms(c.terminal_ms[i])},"first_token_ms":${ms(c.first_token_ms[i])},"last_token_ms":${ms(c.last_token_ms[i])}` +
    `,"ttft_ms":${ms(l.ttft_ms)},"ttst_ms":${ms(l.ttst_ms)},"e2e_latency_ms":${ms(l.e2e_latency_ms)},"itl_ms":${ms(l.itl_ms)}` +
    `,"input_length":${c.input_length[i]},"requested_output_length":${c.requested_output[i]},"output_length":${c.output_length[i]},"reused_input_tokens":${c.reused_tokens[i]}` +
    (r.tiers ? tiers(c, i, start) : '') +
    (r.handoffs === null ? served(r, i) : handedOver(r, r.handoffs, i)) +
    admissions(r, i, start) +
    `,"pressure_record_ordinals":[],"terminal_status":"${STATUS_WORDS[c.status[i]]}"}\n`
  );
}

/** Whose request it is. @param {Result} r @param {number} turn */
function lineStart(r, turn) {
  const session = () => sessionID(r.outline, r.outline.session[turn]);
  if (r.graph !== null) return nodeStart(r.graph, session(), turn);
  return r.named ? `"session_id":${jsonText(session())},"turn_index":${r.outline.index[turn]}` : '"session_id":null,"turn_index":null';
}

/** Where a request that one worker served went. @param {Result} r @param {number} i */
function served(r, i) {
  const c = r.records;
  return (
    `,"prefill_worker_idx":null,"decode_worker_idx":${c.worker[i]},"prefill_admit_ms":null,"source_held_ms":null,"destination_reserved_ms":null` +
    ',"destination_activated_ms":null,"decode_admit_ms":null,"source_released_ms":null' +
    ',"decode_reused_input_tokens":null,"prefill_route_overlap_tokens":null,"decode_route_overlap_tokens":null' +
    `,"routing_history":[${route('agg', c.worker[i], r.ranks, r.blockSize, r.routes === null ? null : routeOf(r.routes, '', c.turn[i], r.routes.routed[c.turn[i]] !== 0))}]`
  );
}

/** What a router said. @typedef {{known: boolean, waited: boolean, overlap: number, best: number, enteredMs: number, releasedMs: number}} Route */

/** @param {Record<string, ArrayLike<number>>} columns @param {string} prefix @param {number} row @param {boolean} known @returns {Route} */
function routeOf(columns, prefix, row, known) {
  const at = (/** @type {string} */ name) => columns[prefix + name][row];
  return { known, waited: at('waited') !== 0, overlap: at('overlap_blocks'), best: at('best_blocks'), enteredMs: at('entered_ms'), releasedMs: at('released_ms') };
}

/** Where a request went in two pools, and when. @param {Result} r @param {NonNullable<Result['handoffs']>} h @param {number} i */
function handedOver(r, h, i) {
  const optional = (/** @type {number} */ n) => (n < 0 ? 'null' : String(n));
  const ms = (/** @type {string} */ name) => lineFloat(h[name][i]);
  const known = h.routed[i] !== 0;
  const pools = [
    { pool: 'prefill', scheduler: h.prefill_scheduler[i], ranks: r.prefillRanks, route: routeOf(h, 'prefill_route.', i, known) },
    { pool: 'decode', scheduler: h.decode_scheduler[i], ranks: r.ranks, route: routeOf(h, 'decode_route.', i, known) },
  ];
  const overlap = (/** @type {typeof pools[number]} */ p) => (p.scheduler < 0 ? 'null' : String(p.route.overlap * r.blockSize));
  const ordered = h.decode_first[i] !== 0 ? [pools[1], pools[0]] : pools;
  const none = ordered.findIndex((p) => p.scheduler < 0);
  const history = (none < 0 ? ordered : ordered.slice(0, none)).map((p) => route(p.pool, p.scheduler, p.ranks, r.blockSize, p.route));
  return (
    `,"prefill_worker_idx":${optional(h.prefill_scheduler[i])},"decode_worker_idx":${optional(r.records.worker[i])},"prefill_admit_ms":${ms('prefill_admit_ms')}` +
    `,"source_held_ms":${ms('held_ms')},"destination_reserved_ms":${ms('reserved_ms')},"destination_activated_ms":${ms('activated_ms')}` +
    `,"decode_admit_ms":${ms('decode_admit_ms')},"source_released_ms":${ms('source_released_ms')},"decode_reused_input_tokens":${optional(h.decode_reused[i])}` +
    `,"prefill_route_overlap_tokens":${overlap(pools[0])},"decode_route_overlap_tokens":${overlap(pools[1])},"routing_history":[${history.join(',')}]`
  );
}

/** @param {Result['records']} c @param {number} i @param {number} start */
function tiers(c, i, start) {
  if (c.admission_count[i] === 0) return ',"first_admission_g1_reused_input_tokens":null,"first_admission_host_reused_input_tokens":null';
  const host = c.first_host_tokens[i];
  return `,"first_admission_g1_reused_input_tokens":${c.admission_reused[start] - host},"first_admission_host_reused_input_tokens":${host}`;
}

/** @param {string} pool @param {number} scheduler @param {number} ranks @param {number} blockSize @param {Route | null} route */
function route(pool, scheduler, ranks, blockSize, route) {
  const waited = route?.waited ?? false;
  const span = waited && route !== null ? [lineFloat(route.enteredMs), lineFloat(route.releasedMs)] : ['null', 'null'];
  const blocks =
    route?.known === true
      ? `"selected_overlap_blocks":${route.overlap},"best_available_overlap_blocks":${route.best},"overlap_regret_blocks":${route.best - route.overlap}`
      : '"selected_overlap_blocks":null,"best_available_overlap_blocks":null,"overlap_regret_blocks":null';
  return (
    `{"pool":"${pool}","outcome":"${waited ? 'queued' : 'immediate'}","queue_entered_at_ms":${span[0]},"released_at_ms":${span[1]}` +
    `,"queue_wait_ms":${lineFloat((route?.releasedMs ?? 0) - (route?.enteredMs ?? 0))},"logical_worker_id":${Math.floor(scheduler / ranks)}` +
    `,"scheduler_id":${scheduler},"dp_rank":${scheduler % ranks},"reported_overlap_tokens":${(route?.overlap ?? 0) * blockSize},${blocks},"placement_replica_id":null}`
  );
}

/** @param {Result} r @param {number} i @param {number} start */
function admissions(r, i, start) {
  const c = r.records;
  const count = c.admission_count[i];
  const prefills = r.handoffs === null ? count : r.handoffs.prefill_admits[i];
  const list = Array.from({ length: count }, (_, k) => {
    const first = k < prefills ? 0 : prefills; // of its pool
    const pool = r.handoffs === null ? 'agg' : k < prefills ? 'prefill' : 'decode';
    const reused = c.admission_reused[start + k];
    const split = r.tiers && k === 0 ? `,"g1_reused_input_tokens":${reused - c.first_host_tokens[i]},"host_reused_input_tokens":${c.first_host_tokens[i]}` : '';
    return `{"admission_ordinal":${k},"pool_admission_ordinal":${k - first},"pool":"${pool}","at_ms":${lineFloat(c.admission_at_ms[start + k])},"reused_input_tokens":${reused}${split},"is_readmission":${k > first}}`;
  });
  const again = Math.max(prefills - 1, 0) + Math.max(count - prefills - 1, 0);
  return `,"admission_history":[${list.join(',')}],"admission_count":${count},"readmission_count":${again}`;
}

/** Columns of the table of requests: a name and how a cell is spelt. @type {[string, (r: Result, i: number, ordinal: number) => string][]} */
const CELLS = [
  ['request', (_r, _i, ordinal) => String(ordinal)],
  ['session_id', (r, i) => (r.named ? cell(sessionID(r.outline, r.outline.session[r.records.turn[i]])) : '')],
  ['turn_index', (r, i) => (r.named ? String(r.outline.index[r.records.turn[i]]) : '')],
  ['worker', (r, i) => String(Math.floor(r.records.worker[i] / r.ranks))],
  ['dp_rank', (r, i) => String(r.records.worker[i] % r.ranks)],
  ['status', (r, i) => STATUS_WORDS[r.records.status[i]]],
  ...['arrival_ms', 'first_admit_ms', 'first_token_ms', 'last_token_ms', 'terminal_ms'].map(
    (name) => /** @type {typeof CELLS[number]} */ ([name, (r, i) => number(/** @type {any} */ (r.records)[name][i])]),
  ),
  ['ttft_ms', (r, i) => number(latencies(r.records, i).ttft_ms)],
  ['itl_ms', (r, i) => number(latencies(r.records, i).itl_ms)],
  ['e2e_latency_ms', (r, i) => number(latencies(r.records, i).e2e_latency_ms)],
  ...['input_length', 'requested_output', 'output_length', 'reused_tokens', 'admission_count'].map(
    (name) => /** @type {typeof CELLS[number]} */ ([name, (r, i) => String(/** @type {any} */ (r.records)[name][i])]),
  ),
];

/** @param {number} x */
const number = (x) => (Number.isNaN(x) ? '' : pythonFloat(x));
/** A text in a cell. One that a spreadsheet would take for a formula is marked as text. @param {string} s */
const cell = (s) => {
  const safe = /^[=+\-@\t\r]/.test(s) ? `'${s}` : s;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
};

/** A row per request in order of arrival, as RFC 4180 has it. @param {Result} r @returns {Blob} */
export function requestsCSV(r) {
  const { number: ordinal, order } = byArrival(r);
  const parts = [CELLS.map(([name]) => name).join(',') + '\r\n'];
  for (const i of order) parts.push(CELLS.map(([, spell]) => spell(r, i, ordinal[r.records.turn[i]])).join(',') + '\r\n');
  return new Blob(parts, { type: 'text/csv' });
}
