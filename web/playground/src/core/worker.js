// @ts-check
// A module worker that runs scenarios, one at a time. Messages to it:
//   {type: 'module', module}                                    before any other
//   {type: 'run', id, scenario, trace, traceName, files, record} answered by progress messages, then one result or error
//   {type: 'check', id, scenario, files}                        answered by complaints
//   {type: 'cancel', id}                                        ends a run between two steps
// Messages from it have the id and a type: progress, result, complaints, error.

import { Cancelled, check, run } from './run.js';
import { ComplaintError } from './wording.js';

/** What a worker's end of a channel can do. */
/** @typedef {{post: (message: object, transfer?: Transferable[]) => void, listen: (take: (message: any) => void) => void}} Port */

/** How often progress is told at most, in ms. */
const TELL_MS = 30;

/** @param {Port} port */
export function serve(port) {
  /** @type {WebAssembly.Module | null} */
  let module = null;
  /** Runs that are to end. @type {Set<number>} */
  const cancelled = new Set();
  /** The work under way and what waits. */
  let last = Promise.resolve();

  port.listen((m) => {
    if (m.type === 'module') module = m.module;
    else if (m.type === 'cancel') cancelled.add(m.id);
    else last = last.then(() => work(m));
  });

  /** @param {any} m */
  async function work(m) {
    try {
      if (module === null) throw new Error('a worker is asked before it has core.wasm');
      if (m.type === 'check') port.post({ id: m.id, type: 'complaints', complaints: await check(module, m.scenario, m.files) });
      else await simulate(module, m);
    } catch (e) {
      port.post({ id: m.id, type: 'error', ...told(e) });
    } finally {
      cancelled.delete(m.id);
    }
  }

  /** @param {WebAssembly.Module} module @param {any} m */
  async function simulate(module, m) {
    let toldMs = -Infinity;
    let stage = '';
    const turns = new Turns();
    try {
      const result = await run(module, m.scenario, {
        trace: m.trace, traceName: m.traceName, files: m.files, record: m.record,
        progress(p) {
          const now = performance.now();
          if (p.stage === stage && now - toldMs < TELL_MS) return;
          [stage, toldMs] = [p.stage, now];
          port.post({ id: m.id, type: 'progress', progress: p });
        },
        async goOn() {
          await turns.next();
          return !cancelled.has(m.id);
        },
      });
      port.post({ id: m.id, type: 'result', result }, transferables(result));
    } finally {
      turns.close();
    }
  }
}

/**
 * Turns of the event loop: what has been posted before one is taken before it
 * ends. A channel's messages come without the delay of timers; Node, which takes
 * many of one channel before it looks at another, has immediates.
 */
class Turns {
  constructor() {
    this.immediately = /** @type {{setImmediate?: (f: () => void) => void}} */ (globalThis).setImmediate;
    this.channel = this.immediately === undefined ? new MessageChannel() : null;
    /** @type {() => void} */
    this.resume = () => {};
    if (this.channel !== null) this.channel.port1.onmessage = () => this.resume();
  }

  next() {
    return new Promise((/** @type {(value: void) => void} */ resolve) => {
      this.resume = resolve;
      if (this.channel !== null) this.channel.port2.postMessage(null);
      else this.immediately?.(() => this.resume());
    });
  }

  close() {
    this.channel?.port1.close();
    this.channel?.port2.close();
  }
}

/** An error as a message has it. @param {unknown} e */
function told(e) {
  if (e instanceof ComplaintError) return { complaints: e.complaints, message: e.message };
  if (e instanceof Cancelled) return { cancelled: true, message: e.message };
  return { message: e instanceof Error ? e.message : String(e) };
}

/** Every buffer of a result, once. @param {unknown} x @param {Set<ArrayBuffer>} [found] @returns {ArrayBuffer[]} */
function transferables(x, found = new Set()) {
  if (ArrayBuffer.isView(x)) found.add(/** @type {ArrayBuffer} */ (x.buffer));
  else if (Array.isArray(x)) x.forEach((y) => transferables(y, found));
  else if (typeof x === 'object' && x !== null) Object.values(x).forEach((y) => transferables(y, found));
  return [...found];
}

if ('DedicatedWorkerGlobalScope' in globalThis) {
  const scope = /** @type {Pick<Worker, 'postMessage' | 'addEventListener'>} */ (/** @type {unknown} */ (globalThis));
  serve({
    post: (message, transfer = []) => scope.postMessage(message, transfer),
    listen: (take) => scope.addEventListener('message', (e) => take(e.data)),
  });
}
