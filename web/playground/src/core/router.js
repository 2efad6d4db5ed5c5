// @ts-check
// The KV router's configuration (--router-config): its fields, what they accept,
// and the keys of frames that they become. Fields that no replay reads are
// checked, too.

import { nearest, quote } from './wording.js';

/** @typedef {import('./msgpack.js').Value} Value */
/** @typedef {import('./wording.js').ComplaintList} ComplaintList */

const NUMBER = 'a finite number of at least 0';
const SHARE = 'a number from 0 to 1';
const NATURAL = 'a whole number of at least 0';
const POSITIVE = 'a whole number of at least 1';
const BOOL = 'true or false';
const MOST_32 = 0xffffffff;
const UNSET = -1;

/**
 * A field: its kind, the key of a frame below routing.router, and its words. A
 * kind with ? takes null as well.
 * @type {Record<string, [kind: 'real' | 'real?' | 'share' | 'share?' | 'bool' | 'word' | 'text?' | 'whole' | 'whole+' | 'whole?' | 'off', key?: string, words?: string[]]>}
 */
export const ROUTER = {
  overlap_score_credit: ['real', 'overlap_credit'],
  overlap_score_credit_decay: ['real', 'overlap_credit_decay'],
  prefill_load_scale: ['real', 'prefill_load_scale'],
  decode_active_request_weight: ['real', 'active_request_weight'],
  overlap_score_weight: ['real?'],
  host_cache_hit_weight: ['share', 'host_hit_weight'],
  disk_cache_hit_weight: ['share', 'disk_hit_weight'],
  router_temperature: ['real', 'temperature'],
  use_kv_events: ['bool'],
  durable_kv_events: ['off'],
  router_replica_sync: ['bool'],
  router_track_active_blocks: ['bool', 'track_active_blocks'],
  router_track_output_blocks: ['bool'],
  router_assume_kv_reuse: ['bool', 'assume_kv_reuse'],
  router_track_prefill_tokens: ['bool', 'track_prefill_tokens'],
  router_tracking_hash: ['word', 'tracking_hash', ['public-xxh3-v1', 'keyed-xxh3-v1']],
  router_tracking_key_file: ['text?'],
  router_tracking_key_id: ['text?'],
  router_prefill_load_model: ['word', 'load_model', ['none', 'aic', 'ais']],
  router_snapshot_threshold: ['whole?'],
  router_reset_states: ['bool'],
  router_ttl_secs: ['real'],
  router_queue_threshold: ['real?', 'queue_threshold'],
  router_policy_config: ['text?'],
  router_event_threads: ['whole+'],
  skip_initial_worker_wait: ['bool'],
  router_queue_policy: ['word', 'queue_policy', ['fcfs', 'lcfs', 'wspt']],
  use_remote_indexer: ['bool'],
  serve_indexer: ['bool'],
  enable_session_prefix_index: ['bool'],
  shared_cache_multiplier: ['share?'],
  shared_cache_type: ['word', undefined, ['none', 'hicache']],
  router_predicted_ttl_secs: ['real?'],
  conditional_disagg_enabled: ['bool'],
  conditional_disagg_policy: ['word', undefined, ['isl_bounding', 'prefill_load', 'isl_or_load']],
  conditional_disagg_eff_isl_threshold: ['whole'],
  conditional_disagg_eff_isl_ratio_threshold: ['share'],
  conditional_disagg_prefill_busy_threshold: ['real?'],
  conditional_disagg_decode_busy_threshold: ['real?'],
};

/** Names of the fields that config.RouterField numbers, from 1 on. */
export const FAULT_NAMES = [
  'overlap_score_credit', 'overlap_score_credit_decay', 'prefill_load_scale', 'decode_active_request_weight', 'host_cache_hit_weight', 'disk_cache_hit_weight',
  'router_temperature', 'router_ttl_secs', 'router_queue_threshold', 'router_event_threads', 'shared_cache_multiplier', 'router_predicted_ttl_secs',
  'conditional_disagg_eff_isl_ratio_threshold', 'conditional_disagg_eff_isl_threshold', 'conditional_disagg_prefill_busy_threshold',
  'conditional_disagg_decode_busy_threshold', 'router_queue_policy', 'router_track_output_blocks', 'router_prefill_load_model', 'router_tracking_key_file',
  'router_tracking_key_id', 'serve_indexer', 'enable_session_prefix_index', 'conditional_disagg_policy',
];

/** Rules by config.RouterCode, from 1 on; of the first three it is said what is accepted. */
const RULES = [
  `not ${NUMBER}`, `not ${SHARE}`, `not ${POSITIVE}`, 'not one of the values there are',
  "output blocks are tracked with the prompts'; it needs router_track_active_blocks true",
  'there is no prompt work to predict; it needs router_track_prefill_tokens true',
  'router_tracking_hash "keyed-xxh3-v1" needs router_tracking_key_file and router_tracking_key_id',
  'it belongs to router_tracking_hash "keyed-xxh3-v1" only',
  'it excludes use_remote_indexer; one of the two is accepted',
  'it needs use_kv_events true',
  'it excludes use_remote_indexer',
  'nothing says when a prefill worker is busy; it needs conditional_disagg_prefill_busy_threshold or router_queue_threshold',
];
const CODE_ACCEPTS = [NUMBER, SHARE, POSITIVE];

/** A value as sentences quote it. @param {unknown} x */
function found(x) {
  if (typeof x === 'string') return quote(x);
  if (Array.isArray(x)) return 'a list';
  return typeof x === 'object' && x !== null ? 'an object' : JSON.stringify(x);
}

/** @param {string[]} words */
const choice = (words) => {
  const quoted = words.map((w) => `"${w}"`);
  return `${quoted.slice(0, -1).join(', ')} or ${quoted[quoted.length - 1]}`;
};

/** @param {unknown} x @returns {x is number} */
const isNumber = (x) => typeof x === 'number' && Number.isFinite(x);
/** @param {unknown} x */
const amount = (x) => isNumber(x) && x >= 0;

/** What is wrong with a value, '' if nothing. @param {string} kind @param {string[]} words @param {unknown} x */
function wrong(kind, words, x) {
  if (kind.endsWith('?') && x === null) return '';
  switch (kind) {
    case 'real':
      return amount(x) ? '' : `${NUMBER} is accepted`;
    case 'real?':
      return amount(x) ? '' : `${NUMBER} or null is accepted`;
    case 'share':
    case 'share?':
      if (!isNumber(x) || (kind === 'share?' && x < 0)) return `${NUMBER}${kind === 'share?' ? ' or null' : ''} is accepted`;
      return x >= 0 && x <= 1 ? '' : `${SHARE} is accepted`;
    case 'bool':
      return typeof x === 'boolean' ? '' : `${BOOL} is accepted`;
    case 'off':
      return x === false ? '' : 'false is accepted';
    case 'word':
      return typeof x === 'string' && words.includes(x) ? '' : `${choice(words)} is accepted`;
    case 'text?':
      return typeof x === 'string' && x.trim() !== '' ? '' : 'a text that is not blank or null is accepted';
  }
  const accepted = kind === 'whole+' ? POSITIVE : kind === 'whole?' ? `${NATURAL} or null` : NATURAL;
  if (typeof x !== 'number' || !/^\d+$/.test(JSON.stringify(x)) || (kind === 'whole+' && x < 1)) return `${accepted} is accepted`;
  return x <= MOST_32 ? '' : `at most ${MOST_32} is accepted`;
}

/** The router's configuration, read. */
export class ReadRouter {
  /** @param {Record<string, unknown>} config @param {ComplaintList} complaints */
  constructor(config, complaints) {
    this.config = config;
    this.complaints = complaints;
    /** Keys of a frame. @type {Record<string, Value>} */
    this.pairs = {};
    for (const [name, x] of Object.entries(config)) {
      if (x !== undefined) this.field(name, x);
    }
    this.older();
    this.rules();
  }

  /** @param {string} name @param {string} sentence */
  complain(name, sentence) {
    this.complaints.add(`router.config.${name}`, sentence);
  }

  /** @param {string} name @param {unknown} x */
  field(name, x) {
    if (!Object.hasOwn(ROUTER, name)) {
      const near = nearest(name, Object.keys(ROUTER));
      return this.complain(name, `unknown field ${quote(name)}; ${near === '' ? `known fields here are ${Object.keys(ROUTER).join(', ')}` : `did you mean ${near}?`}`);
    }
    const [kind, key, words = []] = ROUTER[name];
    const accepted = wrong(kind, words, x);
    if (accepted !== '') return this.complain(name, `${name} is ${found(x)}; ${accepted}`);
    if (key === undefined) return;
    if (kind === 'word') this.pairs[`routing.router.${key}`] = Math.min(words.indexOf(String(x)), name === 'router_prefill_load_model' ? 1 : words.length);
    else this.pairs[`routing.router.${key}`] = x === null ? UNSET : /** @type {Value} */ (x);
  }

  /** The older name of prefill_load_scale; 0 also switched the credit off. */
  older() {
    const weight = this.config.overlap_score_weight;
    if (typeof weight !== 'number') return;
    this.pairs['routing.router.prefill_load_scale'] = weight;
    if (weight === 0) this.pairs['routing.router.overlap_credit'] = 0;
  }

  /** What fields ask of one another, in the order of the command line; and what a page has no file for. */
  rules() {
    const c = this.config;
    const broken = (/** @type {boolean} */ rule, /** @type {string} */ name, /** @type {number} */ code) => {
      if (rule) this.complain(name, `${name}: ${RULES[code - 1]}`);
      return rule;
    };
    if (typeof c.router_policy_config === 'string') this.complain('router_policy_config', 'router_policy_config names a file, which a page does not read; null is accepted');
    if (c.router_tracking_hash === 'keyed-xxh3-v1') {
      this.complain('router_tracking_hash', 'router_tracking_hash is "keyed-xxh3-v1", whose key is a file, which a page does not read; "public-xxh3-v1" is accepted');
      return;
    }
    const [events, remote, session] = [c.use_kv_events !== false, c.use_remote_indexer === true, c.enable_session_prefix_index === true];
    const byLoad = c.conditional_disagg_policy === 'prefill_load' || c.conditional_disagg_policy === 'isl_or_load';
    const unbounded = typeof c.conditional_disagg_prefill_busy_threshold !== 'number' && typeof c.router_queue_threshold !== 'number';
    broken(c.router_track_output_blocks === true && c.router_track_active_blocks === false, 'router_track_output_blocks', 5) ||
      broken(this.predicts && c.router_track_prefill_tokens === false, 'router_prefill_load_model', 6) ||
      broken(typeof c.router_tracking_key_file === 'string', 'router_tracking_key_file', 8) ||
      broken(typeof c.router_tracking_key_id === 'string', 'router_tracking_key_id', 8) ||
      broken(remote && c.serve_indexer === true, 'serve_indexer', 9) ||
      broken(typeof c.router_predicted_ttl_secs === 'number' && !events, 'router_predicted_ttl_secs', 10) ||
      broken(session && !events, 'enable_session_prefix_index', 10) ||
      broken(session && remote, 'enable_session_prefix_index', 11) ||
      broken(c.conditional_disagg_enabled === true && byLoad && unbounded, 'conditional_disagg_policy', 12);
  }

  /** Whether it predicts how long prompts take. */
  get predicts() {
    return this.pairs['routing.router.load_model'] === 1;
  }

  /** What the core refuses. @param {number} code @param {number} field */
  refusal(code, field) {
    let name = FAULT_NAMES[field - 1] ?? '';
    if (name === 'prefill_load_scale' && !(name in this.config) && 'overlap_score_weight' in this.config) name = 'overlap_score_weight';
    const said = name in this.config;
    const accepted = CODE_ACCEPTS[code - 1];
    const sentence = said && accepted !== undefined ? `${name} is ${found(this.config[name])}; ${accepted} is accepted` : `${name}: ${RULES[code - 1]}`;
    return { path: `router.config.${name}`, sentence };
  }
}
