// @ts-check
// What results do not show: one sentence per matter, those of the command line
// after "warning: ".

import { nameAt } from './agents.js';
import { ROUTER_MODES, modeFlag } from './scenario.js';
import { quote } from './wording.js';

/** @typedef {import('./scenario.js').Plan} Plan */
/** @typedef {import('./msgpack.js').Pairs} Pairs */
/** @typedef {import('./types.d.ts').Outline} Outline */

/** Most requests that a warning names. */
const MOST_NAMED = 5;

/**
 * @param {Plan} plan
 * @param {Pairs} fed the answer of Feed or Synthesize
 * @param {{format: string, traceName: string, turns: number, rejected: number, unservable: Int32Array, outline: Outline}} run
 * @returns {string[]}
 */
export function warningsOf(plan, fed, run) {
  const out = [...engines(plan), ...before(plan, fed, run)];
  if (run.rejected > 0) out.push(`${run.rejected} of ${run.turns} requests were rejected: their prompts reach max_model_len or need more blocks than num_gpu_blocks`);
  const n = run.unservable.length;
  if (n > 0) out.push(`${n} of ${run.turns} requests can never be served by this engine and failed: ${names(fed, run.outline, run.unservable)}`);
  return out;
}

/** Engine arguments that fit together badly. @param {Plan} plan */
function engines(plan) {
  const out = [];
  for (const e of plan.prefill === null ? [plan.engine] : [plan.prefill, plan.engine]) {
    if ('engine.disk_offload.blocks' in e.pairs) out.push('with a disk (g3_offload) the reference gives another result in rare cases, about one random run of 800 (docs/deviations.md)');
    const grid = plan.table?.warning(e) ?? '';
    if (grid !== '') out.push(grid);
  }
  return out;
}

/** What is known before the run. @param {Plan} plan @param {Pairs} fed @param {{format: string, traceName: string, turns: number}} run */
function before(plan, fed, run) {
  const given = (/** @type {string} */ flag) => plan.given(flag);
  const out = [];
  const looks = run.format !== '' && run.format !== 'mooncake' && !given('trace-format');
  if (looks) out.push(`${quote(run.traceName)} is read as ${run.format} by the looks of it; --trace-format chooses another format`);
  if (Number(fed.failed ?? 0) > 0) out.push(`${fed.failed} of ${fed.rows} requests are left out: they have no tokens, as those that failed`);
  if (given('replay-concurrency') && given('arrival-speedup-ratio')) out.push('--arrival-speedup-ratio has no effect with --replay-concurrency');
  if (given('arrival-seed') && plan.values.get('arrival-seed') !== 42n && !given('request-rate')) out.push('--arrival-seed has no effect without --request-rate');
  const [ratio, groups] = ['shared-prefix-ratio', 'num-prefix-groups'].map((f) => (given(f) ? plan.number(f) : 0));
  if (ratio > 0 && groups === 0) out.push('--shared-prefix-ratio has no effect without --num-prefix-groups');
  if (ratio === 0 && groups > 0) out.push('--num-prefix-groups has no effect without --shared-prefix-ratio');
  out.push(...routing(plan));
  const odd = Number(fed.odd_rows ?? 0);
  if (odd > 0) {
    const [least, most] = [Number(fed.block_size_min), Number(fed.block_size_max)];
    const fit = least <= most ? `; ${fitting(least, most)} fits every row` : '';
    out.push(`${odd} of ${run.turns} rows have more hash_ids than their input_length needs with --trace-block-size ${plan.traceBlockSize}, first on line ${fed.odd_line}${fit}`);
  }
  return out;
}

/** The size to name of those from least to most: a power of two if there is one. @param {number} least @param {number} most */
function fitting(least, most) {
  const power = 2 ** Math.ceil(Math.log2(Math.max(least, 1)));
  return power >= least && power <= most ? power : least;
}

/** Flags that another mode of routing would need. @param {Plan} plan */
function routing(plan) {
  const mode = ROUTER_MODES[plan.given('router-mode') ? plan.number('router-mode') : 0];
  const out = [];
  if (plan.scenario.router?.config !== undefined && mode !== 'kv_router') out.push(`--router-config has no effect with --router-mode ${modeFlag(mode)}`);
  if (plan.given('router-seed') && mode === 'round_robin') out.push(`--router-seed has no effect with --router-mode ${modeFlag(mode)}`);
  return out;
}

/** The first few turns, by line where a line is one session, else by turn and session. @param {Pairs} fed @param {Outline} o @param {Int32Array} turns */
function names(fed, o, turns) {
  const one = (/** @type {number} */ t) => {
    const session = o.session[t];
    if (fed.drawn === true) return `request ${session + 1}`;
    if (o.index[t] === 0 && o.next[t] < 0 && o.line[session] > 0 && fed.unlined !== true) return `line ${o.line[session]}`;
    return `turn ${o.index[t] + 1} of session ${quote(nameAt({ text: o.ids, ends: o.idEnds }, session))}`;
  };
  const list = Array.from(turns.subarray(0, MOST_NAMED), one);
  if (turns.length > MOST_NAMED) list.push(`and ${turns.length - MOST_NAMED} more`);
  return list.join(', ');
}
