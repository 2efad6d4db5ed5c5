// @ts-check
// One scenario on one guest, from its trace to its result. Between steps others
// get their turn, so that a run can be cancelled and its progress be told.

import { Collector } from './collect.js';
import { fleetOf } from './fleet.js';
import { Guest, Op, Refusal, Refused, Status } from './guest.js';
import { floats, ints } from './msgpack.js';
import { recordingOf } from './recording.js';
import { readSummary, reportJSON } from './report.js';
import { FORMATS, Plan } from './scenario.js';
import { endsOf } from './agents.js';
import { Field, complaintOf, engineComplaint, failureSentence } from './sentences.js';
import { loadTable } from './timing.js';
import { Trace, concatenated } from './trace.js';
import { warningsOf } from './warnings.js';
import { ComplaintError, complain } from './wording.js';

/** @typedef {import('./types.js').Scenario} Scenario */
/** @typedef {import('./types.js').Source} Source */
/** @typedef {import('./types.js').Progress} Progress */
/** @typedef {import('./types.js').Result} Result */
/** @typedef {import('./types.js').Records} Records */
/** @typedef {import('./types.js').Format} Format */
/** @typedef {import('./msgpack.js').Pairs} Pairs */

/** Bytes of text that are fed at a time. */
const CHUNK = 256 << 10;
/** Rows of a table that are asked for at a time. */
const ROWS = 1 << 15;
/** Columns of text, whose bytes are no rows. */
const TEXTS = ['ids', 'requests', 'plays'];
/** How long a step should take. */
const STEP_MS = 25;
const MOST_ROWS_RESERVED = 1 << 20;

/** A run that somebody has cancelled. */
export class Cancelled extends Error {
  constructor() {
    super('the run is cancelled');
    this.name = 'AbortError';
  }
}

/**
 * What a run has from outside.
 * @typedef {object} Surroundings
 * @property {Source | Source[] | null} trace its bytes; null for a synthetic workload
 * @property {string} traceName for sentences
 * @property {Record<string, Source>} files durations by name
 * @property {boolean} record keep what charts need; a run takes longer then
 * @property {(p: Progress) => void} progress
 * @property {() => Promise<boolean>} goOn lets others have their turn; false: the run is cancelled
 */

/**
 * Runs a scenario.
 * @param {WebAssembly.Module} module
 * @param {Scenario} scenario
 * @param {Surroundings} around
 * @returns {Promise<Result>}
 * @throws {ComplaintError | Cancelled}
 */
export async function run(module, scenario, around) {
  const table = await loadTable(scenario, around.files);
  const plan = new Plan(scenario, table);
  const guest = await Guest.instantiate(module);
  const sim = new Simulation(guest, plan, around);
  try {
    sim.configure();
    await sim.load();
    await sim.simulate();
    return await sim.result();
  } catch (e) {
    const complaint = e instanceof Refusal ? complaintOf(e, plan, sim.format) : null;
    throw complaint === null ? e : new ComplaintError([complaint]);
  }
}

/**
 * What is wrong with a scenario, without running it.
 * @param {WebAssembly.Module} module
 * @param {Scenario} scenario
 * @param {Record<string, Source>} files
 * @returns {Promise<import('./types.js').Complaint[]>}
 */
export async function check(module, scenario, files) {
  try {
    const plan = new Plan(scenario, await loadTable(scenario, files));
    const guest = await Guest.instantiate(module);
    const sim = new Simulation(guest, plan, null);
    try {
      sim.configure();
      if (plan.synthetic) sim.synthesize();
    } catch (e) {
      const complaint = e instanceof Refusal ? complaintOf(e, plan) : null;
      if (complaint === null) throw e;
      return [complaint];
    }
    return [];
  } catch (e) {
    if (e instanceof ComplaintError) return e.complaints;
    throw e;
  }
}

class Simulation {
  /** @param {Guest} guest @param {Plan} plan @param {Surroundings | null} around */
  constructor(guest, plan, around) {
    this.guest = guest;
    this.plan = plan;
    this.around = around;
    this.handle = guest.open();
    /** @type {Format | ''} */
    this.format = plan.synthetic ? '' : (/** @type {import('./types.d.ts').TraceOptions} */ (plan.scenario.workload).format ?? '');
    this.isGraph = false;
    this.turns = 0;
    this.named = false;
    this.wallMs = 0;
    /** What the workload has. @type {Pairs} */
    this.fed = {};
    /** @type {Collector | null} */
    this.collector = null;
  }

  /** @param {number} op @param {Pairs} [request] */
  call(op, request = {}) {
    return this.guest.call(this.handle, op, request);
  }

  /** @returns {Surroundings} */
  outside() {
    if (this.around === null) throw new Error('a check simulates nothing');
    return this.around;
  }

  async breathe() {
    if (!(await this.outside().goOn())) throw new Cancelled();
  }

  configure() {
    this.checkPrefill();
    this.call(Op.Configure, { ...this.plan.configure(), ...(this.around?.record ? { record: true } : {}) });
  }

  /** The engine of prompts is checked by itself and first, as the command line does: of the two, a refusal does not say which. */
  checkPrefill() {
    const prefill = this.plan.prefill;
    if (prefill === null) return;
    const alone = this.guest.open();
    try {
      this.guest.call(alone, Op.Configure, prefill.frame('engine'));
    } catch (e) {
      if (!(e instanceof Refusal) || e.code !== Refused.BadConfig) throw e;
      const [code, field] = [Number(e.pairs.code), Number(e.pairs.field)];
      if (field !== Field.Role) throw new ComplaintError([engineComplaint(code, field, prefill)]); // it is no run without the other
    } finally {
      this.guest.close(alone);
    }
  }

  async load() {
    if (this.plan.synthetic) this.synthesize();
    else await this.feed();
  }

  synthesize() {
    this.loaded(this.call(Op.Synthesize, this.plan.synthesize()));
  }

  /** @param {Pairs} fed */
  loaded(fed) {
    this.turns = Number(fed.turns);
    this.named = fed.named === true;
    this.isGraph = fed.graph === true;
    this.fed = fed;
  }

  async feed() {
    const around = this.outside();
    const files = Array.isArray(around.trace) ? around.trace : around.trace === null ? [] : [around.trace];
    if (files.length === 0) complain('workload', 'no workload is given; a trace file, or --input-tokens, --output-tokens and --request-count, are accepted');
    for (const [i, source] of files.entries()) {
      const name = source instanceof File && files.length > 1 ? source.name : around.traceName;
      await this.feedFile(new Trace(source, name), i < files.length - 1, files.length);
    }
  }

  /** @param {Trace} trace @param {boolean} more whether another file follows @param {number} files */
  async feedFile(trace, more, files) {
    const around = this.outside();
    /** @type {Pairs} */
    let first = { file: trace.name.replace(/^.*[/\\]/, '') || 'trace' };
    /** @type {Uint8Array[]} */
    let parts = [];
    let [size, reserve, rows] = [0, 0, 0];
    for await (const part of trace.chunks()) {
      parts.push(part);
      size += part.length;
      if (size < CHUNK) continue;
      const fed = this.take({ text: concatenated(parts), ...first, ...(reserve > 0 ? { reserve } : {}) }, trace, files);
      reserve = rows === 0 ? reserveFor(Number(fed.rows), trace) : 0;
      rows = Number(fed.rows);
      [parts, size, first] = [[], 0, {}];
      around.progress({ stage: 'reading', done: trace.read, total: trace.total });
      await this.breathe();
    }
    const fed = this.take({ text: concatenated(parts), end: true, ...first, ...(more ? { more } : {}) }, trace, files);
    if (!more) this.loaded(fed);
  }

  /** Feeds a part. @param {Pairs} request @param {Trace} trace @param {number} files */
  take(request, trace, files) {
    if ('file' in request && trace.coding === '') request.size = trace.total;
    let fed = /** @type {Pairs} */ ({});
    try {
      fed = this.call(Op.Feed, request);
    } catch (e) {
      if (e instanceof Refusal) this.name(e.pairs);
      throw e;
    }
    this.name(fed);
    if (this.format === 'weka' && trace.coding !== '') complain('trace', `is compressed with ${trace.coding}, want a trace in the format weka as plain text`);
    if (files > 1 && this.format !== '' && this.format !== 'dynamo') complain('trace', `is a trace in the format ${this.format}, which is one file, but ${files} are given; want one`);
    return fed;
  }

  /** Notes the format. @param {Pairs} answer */
  name(answer) {
    const i = Number(answer.format ?? 0);
    if (i > 0) this.format = FORMATS[i - 1];
  }

  async simulate() {
    const around = this.outside();
    around.progress({ stage: 'simulating', done: 0, total: this.turns });
    await this.breathe();
    const collector = around.record ? new Collector(fleetOf(this.plan), ints((await this.table(Op.Turns)).input)) : null;
    this.collector = collector;
    let events = 4096;
    for (;;) {
      const start = performance.now();
      const p = this.call(Op.Step, { events });
      const ms = performance.now() - start;
      this.wallMs += ms;
      collector?.add(this.call(Op.TakeRecording));
      if (p.status === Status.Failed) complain('', failureSentence(p));
      if (p.status === Status.Done) return;
      if (p.status !== Status.Running) throw new Error(`the simulation stopped in an unknown state (${p.status})`);
      events = Math.round(Math.min(Math.max((events * STEP_MS) / Math.max(ms, 0.1), events / 2, 256), events * 2, 1 << 22));
      around.progress({ stage: 'simulating', done: Number(p.done), total: Number(p.total) });
      await this.breathe();
    }
  }

  async result() {
    const around = this.outside();
    around.progress({ stage: 'reporting', done: this.turns, total: this.turns });
    const answer = this.call(Op.Summarize);
    const summary = readSummary(answer);
    const graph = this.isGraph ? await this.graph(answer) : null;
    const json = reportJSON(summary, this.wallMs, graph);
    const records = await this.records();
    const outline = await this.outline();
    this.collector?.finish();
    const unservable = ints((await this.table(Op.Unservable)).turn);
    const [engine, plan] = [this.plan.engine.pairs, this.plan];
    const ranks = (/** @type {Pairs} */ p) => Number(p['engine.dp_size'] ?? 1);
    /** @type {Result} */
    const result = {
      reportJSON: json, report: JSON.parse(new TextDecoder().decode(json)), summary, records, outline, graph, named: this.named,
      ranks: ranks(engine), prefillRanks: plan.prefill === null ? 1 : ranks(plan.prefill.pairs), blockSize: Number(engine['engine.block_size']),
      handoffs: plan.pools ? typed(await this.table(Op.Handoffs)) : null, routes: plan.routed && !plan.pools ? typed(await this.table(Op.Routes)) : null, tiers: 'engine.host_offload.blocks' in engine, unservable,
      recording: this.collector === null ? null : recordingOf(this.collector, records, { tiers: 'engine.host_offload.blocks' in engine }),
      warnings: warningsOf(plan, this.fed, { format: this.format, traceName: around.traceName, turns: this.turns, rejected: summary.numbers.rejected_requests, unservable, outline }),
      format: this.format, wallMs: this.wallMs,
    };
    return result;
  }

  /** A whole table: its bins joined by key. @param {number} op @returns {Promise<Record<string, Uint8Array>>} */
  async table(op) {
    /** @type {Record<string, Uint8Array[]>} */
    const parts = {};
    for (let from = 0; ; from += ROWS) {
      const answer = this.call(op, { from, most: ROWS });
      let rows = 0;
      for (const [key, bin] of Object.entries(answer)) {
        if (!(bin instanceof Uint8Array)) continue;
        (parts[key] ??= []).push(bin);
        if (!TEXTS.includes(key)) rows = Math.max(rows, bin.length / 8);
      }
      if (rows === 0) break;
      await this.breathe();
    }
    return Object.fromEntries(Object.entries(parts).map(([key, bins]) => [key, concatenated(bins)]));
  }

  /** @returns {Promise<Records>} */
  async records() {
    return /** @type {Records} */ (/** @type {unknown} */ (typed(await this.table(Op.Records))));
  }

  /** @returns {Promise<Result['outline']>} */
  async outline() {
    const t = await this.table(Op.Turns);
    const s = await this.table(Op.Sessions);
    return { session: ints(t.session), index: ints(t.index), next: ints(t.next), first: ints(s.first), line: ints(s.line), ids: s.ids, idEnds: endsOf(ints(s.id_length)) };
  }

  /** @param {Pairs} summary an answer of Summarize @returns {Promise<import('./types.d.ts').Graph>} */
  async graph(summary) {
    const about = this.call(Op.Graph);
    const [nodes, plays] = [await this.table(Op.Nodes), await this.table(Op.Plays)];
    const bin = (/** @type {import('./msgpack.js').Value} */ x) => /** @type {Uint8Array} */ (x).slice();
    return {
      blockSize: Number(about.block_size), digest: bin(about.digest), lifecycle: bin(summary['agents.digest']), sourceFormat: String(about.source_format),
      sourceDigest: String(about.source_digest), nestedBasis: String(about.nested_basis), models: { text: bin(about.models), ends: endsOf(ints(about.model_length)) },
      target: String(this.plan.values.get('execution-model') ?? ''), play: ints(nodes.play), parent: ints(nodes.parent), requests: { text: nodes.requests, ends: endsOf(ints(nodes.request_length)) },
      root: ints(plays.root), plays: { text: plays.plays, ends: endsOf(ints(plays.play_length)) }, outcomes: typed(await this.table(Op.Outcomes)),
    };
  }
}

/** Rows to make room for, judging by those so far. @param {number} rows @param {Trace} trace */
function reserveFor(rows, trace) {
  if (trace.coding !== '' || trace.total <= trace.read || rows === 0) return 0;
  return Math.floor(Math.min(rows * ((trace.total - trace.read) / trace.read) * 1.05 + 16, MOST_ROWS_RESERVED));
}

/** Bins as columns: times are f64, all others i32. @param {Record<string, Uint8Array>} table */
function typed(table) {
  /** @type {Record<string, Int32Array | Float64Array>} */
  const columns = {};
  for (const [key, bin] of Object.entries(table)) columns[key] = key.endsWith('_ms') ? floats(bin) : ints(bin);
  return columns;
}
