// @ts-check
// The page's side of simulations: a pool of workers that share one compiled
// core.wasm, and one promise per run.

import { ComplaintError } from './wording.js';

/** @typedef {import('./types.js').Scenario} Scenario */
/** @typedef {import('./types.js').Source} Source */
/** @typedef {import('./types.js').Progress} Progress */
/** @typedef {import('./types.js').Complaint} Complaint */
/** @typedef {import('./types.js').Result} Result */

export { ComplaintError };

/**
 * What a worker is to the pool.
 * @typedef {object} WorkerLike
 * @property {(message: object, transfer?: Transferable[]) => void} post
 * @property {(take: (message: any) => void) => void} listen
 * @property {(fail: (reason: string) => void) => void} broken
 * @property {() => void} end
 */

/**
 * @typedef {object} RunOptions
 * @property {(p: Progress) => void} [onProgress]
 * @property {AbortSignal} [signal] cancels the run; the promise is rejected with an AbortError
 * @property {Record<string, Source>} [files] durations that the scenario names
 * @property {boolean} [record] fills the result's recording; the run takes longer
 * @property {string} [traceName] for sentences; that of the scenario by default
 */

/** A job that a worker has or will have. @typedef {{message: any, resolve: (x: any) => void, reject: (e: Error) => void, onProgress?: (p: Progress) => void, worker?: Slot, end?: ReturnType<typeof setTimeout>, dispose: () => void}} Job */
/** @typedef {{worker: WorkerLike, job: Job | null}} Slot */

/** How long a worker may take to give up a cancelled run, in ms. Then it is ended. */
const PATIENCE_MS = 1000;

/** A pool of workers with one core.wasm. */
export class Simulator {
  /**
   * @param {object} [options]
   * @param {string | URL | BufferSource | WebAssembly.Module} [options.core] core.wasm; beside the sources by default
   * @param {Promise<Response | null>} [options.early] its response, if it is being fetched already; null: that did not work
   * @param {number} [options.workers] at most; as many as there are processors, but 4 at most, by default
   * @param {() => WorkerLike} [options.spawn] starts a worker
   */
  constructor(options = {}) {
    this.core = options.core ?? new URL('../../core.wasm', import.meta.url);
    /** @type {Promise<Response | null> | null} */
    this.early = options.early ?? null;
    this.most = Math.max(1, options.workers ?? Math.min(4, globalThis.navigator?.hardwareConcurrency ?? 2));
    this.spawn = options.spawn ?? browserWorker;
    /** @type {Promise<WebAssembly.Module> | null} */
    this.module = null;
    /** @type {Slot[]} */
    this.slots = [];
    /** @type {Job[]} */
    this.queue = [];
    this.jobs = 0;
  }

  /** Fetches and compiles core.wasm, once. @returns {Promise<WebAssembly.Module>} */
  ready() {
    this.module ??= compile(this.core, this.early).catch((e) => {
      this.module = null; // another call may have more luck
      throw e;
    });
    this.early = null; // a response is read once
    return this.module;
  }

  /**
   * Runs a scenario.
   * @param {Scenario} scenario
   * @param {Source | Source[] | null} [trace] the bytes of its trace; none for a synthetic workload
   * @param {RunOptions} [options]
   * @returns {Promise<Result>}
   * @throws {ComplaintError} what can be put right
   */
  async simulate(scenario, trace = null, options = {}) {
    const w = scenario.workload;
    const named = w?.kind === 'sample' ? w.sample : w?.kind === 'file' ? w.name : '';
    const traceName = options.traceName ?? (trace instanceof File ? trace.name : named || 'the trace');
    const message = { type: 'run', scenario, trace: Array.isArray(trace) ? trace.map(absolute) : absolute(trace), traceName, files: absoluteAll(options.files), record: options.record === true };
    return this.ask(message, options);
  }

  /**
   * What is wrong with a scenario: what core.wasm and its host say without a trace.
   * @param {Scenario} scenario
   * @param {Record<string, Source>} [files]
   * @returns {Promise<Complaint[]>}
   */
  async check(scenario, files) {
    return this.ask({ type: 'check', scenario, files: absoluteAll(files) }, {});
  }

  /** @param {any} message @param {RunOptions} options @returns {Promise<any>} */
  async ask(message, { onProgress, signal }) {
    signal?.throwIfAborted();
    const module = await this.ready();
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const stop = () => this.cancel(job, module);
      /** @type {Job} */
      const job = { message: { ...message, id: ++this.jobs }, resolve, reject, onProgress, dispose: () => (clearTimeout(job.end), signal?.removeEventListener('abort', stop)) };
      signal?.addEventListener('abort', stop);
      this.queue.push(job);
      this.dispatch(module);
    });
  }

  /** Gives waiting jobs to free workers. @param {WebAssembly.Module} module */
  dispatch(module) {
    while (this.queue.length > 0) {
      let slot = this.slots.find((s) => s.job === null);
      if (slot === undefined && this.slots.length < this.most) slot = this.start(module);
      if (slot === undefined) return;
      const job = /** @type {Job} */ (this.queue.shift());
      [slot.job, job.worker] = [job, slot];
      slot.worker.post(job.message);
    }
  }

  /** @param {WebAssembly.Module} module */
  start(module) {
    /** @type {Slot} */
    const slot = { worker: this.spawn(), job: null };
    this.slots.push(slot);
    slot.worker.post({ type: 'module', module });
    slot.worker.listen((m) => this.take(slot, m, module));
    slot.worker.broken((reason) => this.drop(slot, new Error(`a worker has stopped: ${reason}`), module));
    return slot;
  }

  /** Ends a worker; another takes its place. @param {Slot} slot @param {Error} e what becomes of its run @param {WebAssembly.Module} module */
  drop(slot, e, module) {
    this.slots = this.slots.filter((s) => s !== slot);
    slot.worker.end();
    const job = slot.job;
    slot.job = null;
    if (job !== null) this.finish(job, () => job.reject(e));
    this.dispatch(module);
  }

  /** @param {Slot} slot @param {any} m @param {WebAssembly.Module} module */
  take(slot, m, module) {
    const job = slot.job;
    if (job === null || m.id !== job.message.id) return;
    if (m.type === 'progress') return job.onProgress?.(m.progress);
    slot.job = null;
    this.finish(job, () => {
      if (m.type === 'result') job.resolve(m.result);
      else if (m.type === 'complaints') job.resolve(m.complaints);
      else if (m.complaints !== undefined) job.reject(new ComplaintError(m.complaints));
      else job.reject(m.cancelled ? abortError() : new Error(m.message));
    });
    this.dispatch(module);
  }

  /** @param {Job} job @param {() => void} settle */
  finish(job, settle) {
    job.dispose();
    settle();
  }

  /** Cancels a run. A worker that is inside a long step does not hear of it, and others would wait for it. @param {Job} job @param {WebAssembly.Module} module */
  cancel(job, module) {
    const slot = job.worker;
    if (slot !== undefined) {
      slot.worker.post({ type: 'cancel', id: job.message.id });
      job.end = setTimeout(() => slot.job === job && this.drop(slot, abortError(), module), PATIENCE_MS);
      return;
    }
    this.queue = this.queue.filter((j) => j !== job);
    this.finish(job, () => job.reject(abortError()));
  }

  /** Ends all workers; runs under way are rejected. */
  close() {
    const open = [...this.queue, ...this.slots.flatMap((s) => (s.job === null ? [] : [s.job]))];
    for (const s of this.slots) {
      s.job = null;
      s.worker.end();
    }
    [this.slots, this.queue] = [[], []];
    for (const job of open) this.finish(job, () => job.reject(abortError()));
  }
}

const abortError = () => new DOMException('the run is cancelled', 'AbortError');

/** Workers do not know the page's address. @template {Source | null} T @param {T} source @returns {T} */
function absolute(source) {
  if (typeof source !== 'string' || typeof location === 'undefined') return source;
  return /** @type {T} */ (new URL(source, location.href).href);
}

/** @param {Record<string, Source>} [files] */
function absoluteAll(files = {}) {
  return Object.fromEntries(Object.entries(files).map(([name, source]) => [name, absolute(source)]));
}

/** @param {string | URL | BufferSource | WebAssembly.Module} core @param {Promise<Response | null> | null} early */
async function compile(core, early) {
  if (core instanceof WebAssembly.Module) return core;
  if (typeof core !== 'string' && !(core instanceof URL)) return WebAssembly.compile(core);
  const response = (await early) ?? (await fetch(core));
  if (!response.ok) throw new Error(`core.wasm cannot be fetched: the server says ${response.status} ${response.statusText}`.trim());
  const typed = response.headers.get('content-type') === 'application/wasm';
  return typed ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

/** @returns {WorkerLike} */
function browserWorker() {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    listen: (take) => worker.addEventListener('message', (e) => take(e.data)),
    broken: (fail) => worker.addEventListener('error', (e) => fail(e.message || 'its script cannot be loaded')),
    end: () => worker.terminate(),
  };
}

/** The pool of the page. @type {Simulator | null} */
let shared = null;

/** @returns {Simulator} */
export function simulator() {
  shared ??= new Simulator();
  return shared;
}

/**
 * Runs a scenario in the page's pool of workers.
 * @param {Scenario} scenario
 * @param {Source | Source[] | null} [trace]
 * @param {RunOptions} [options]
 * @returns {Promise<Result>}
 */
export function simulate(scenario, trace, options) {
  return simulator().simulate(scenario, trace, options);
}
