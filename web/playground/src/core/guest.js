// @ts-check
// core.wasm as an object: simulations behind handles, frames in and out. One
// guest is one thread; several of them run independently.

import { Wasi, Exit } from './wasi.js';
import { decode, encode } from './msgpack.js';

/** @typedef {import('./msgpack.js').Pairs} Pairs */
/** @typedef {import('./msgpack.js').Value} Value */

/** Operations of a simulation, as in docs/frames.md. */
export const Op = Object.freeze({
  Configure: 1, Feed: 2, Step: 3, Progress: 4, Summarize: 5, Records: 6, Unservable: 7, Turns: 8, Sessions: 9, Synthesize: 10,
  Handoffs: 11, Routes: 12, Direct: 13, TakeRecording: 14, Graph: 15, Nodes: 16, Plays: 17, Outcomes: 18,
  Tick: 19, TakeSamples: 20, Lifecycle: 21,
});

/** What a simulation waits for, as in docs/frames.md. */
export const Status = Object.freeze({
  NoSimulation: 0, Opened: 1, Idle: 2, Running: 3, NeedTiming: 4, NeedScaling: 5, Done: 6, Failed: 7,
});

/** Why a call is refused, as in docs/frames.md. */
export const Refused = Object.freeze({
  BadFrame: 1, WrongVersion: 2, UnknownKey: 3, WrongType: 4, NotInRange: 5, MissingKey: 6, TwiceKey: 7, UnknownOp: 8, UnknownHandle: 9, WrongState: 10,
  BadConfig: 11, BadLine: 12, BadRow: 13, BadRouter: 14, BadPolicy: 15,
  BadTrace: 16, BadGraph: 17, BadRecord: 18, BadObject: 19,
});

/** The version of the protocol. */
export const ABI = 1;

/** An answer that is a refusal; its pairs say why. */
export class Refusal extends Error {
  /** @param {Pairs} pairs */
  constructor(pairs) {
    super(describe(pairs));
    this.name = 'Refusal';
    this.code = Number(pairs.error);
    this.pairs = pairs;
  }
}

/** @param {Pairs} p */
function describe(p) {
  switch (Number(p.error)) {
    case Refused.BadFrame:
      return `core.wasm cannot read the frame at byte ${p.at}`;
    case Refused.BadConfig:
      return `core.wasm refuses the configuration (code ${p.code}, field ${p.field})`;
    case Refused.UnknownKey:
      return `core.wasm refuses the frame: the key "${p.name}" is not known`;
    case Refused.WrongType:
      return `core.wasm refuses the frame: the key "${p.name}" has a value of another type`;
    case Refused.NotInRange:
      return `core.wasm refuses the frame: the key "${p.name}" has a value out of range`;
    case Refused.MissingKey:
      return `core.wasm refuses the frame: the key "${p.name}" is missing`;
    case Refused.TwiceKey:
      return `core.wasm refuses the frame: the key "${p.name}" stands twice`;
    case Refused.BadLine:
    case Refused.BadRow:
    case Refused.BadTrace:
    case Refused.BadGraph:
    case Refused.BadRecord:
    case Refused.BadObject:
      return `core.wasm refuses line ${p.line} of the trace (code ${p.code})`;
  }
  return `core.wasm refuses the call (error ${p.error}, found ${p.found})`;
}

/** The exports of core.wasm. */
/** @typedef {{memory: WebAssembly.Memory, _initialize: () => void, abi: () => number, mailbox: (size: number) => number, open: () => number,
 *   call: (handle: number, op: number, n: number) => number, status: (handle: number) => number, close: (handle: number) => void}} Exports */

/** One instance of core.wasm. */
export class Guest {
  /** @param {Exports} exports @param {Wasi} wasi */
  constructor(exports, wasi) {
    this.exports = exports;
    this.wasi = wasi;
    /** Why the guest has stopped. @type {Error | null} */
    this.dead = null;
  }

  /**
   * Starts an instance.
   * @param {WebAssembly.Module} module
   * @returns {Promise<Guest>}
   */
  static async instantiate(module) {
    const wasi = new Wasi();
    const instance = await WebAssembly.instantiate(module, wasi.imports());
    const exports = /** @type {Exports} */ (/** @type {unknown} */ (instance.exports));
    for (const name of /** @type {const} */ (['_initialize', 'abi', 'mailbox', 'open', 'call', 'status', 'close'])) {
      if (typeof exports[name] !== 'function') throw new Error(`core.wasm has no function ${name}`);
    }
    wasi.memory = exports.memory;
    const guest = new Guest(exports, wasi);
    guest.ask(() => exports._initialize());
    const version = guest.ask(() => exports.abi());
    if (version !== ABI) throw new Error(`core.wasm speaks version ${version} of the frames, this page version ${ABI}`);
    return guest;
  }

  /** Opens a simulation. @returns {number} its handle, never 0 */
  open() {
    return this.ask(() => this.exports.open()) >>> 0;
  }

  /** @param {number} handle @returns {number} a Status */
  status(handle) {
    return this.ask(() => this.exports.status(handle));
  }

  /** @param {number} handle */
  close(handle) {
    this.ask(() => this.exports.close(handle));
  }

  /**
   * Does an operation.
   * @param {number} handle @param {number} op an Op @param {Pairs} request
   * @returns {Pairs} the answer; bins are the caller's to keep
   * @throws {Refusal}
   */
  call(handle, op, request) {
    const answer = decode(this.exchange(handle, op, encode(request)));
    if ('error' in answer) throw new Refusal(answer);
    return answer;
  }

  /**
   * A frame in, a frame out.
   * @param {number} handle @param {number} op @param {Uint8Array} request
   * @returns {Uint8Array} a copy
   */
  exchange(handle, op, request) {
    const to = this.ask(() => this.exports.mailbox(request.length)) >>> 0;
    if (to === 0) throw new Error(`a frame of ${request.length} bytes does not fit into core.wasm`);
    new Uint8Array(this.exports.memory.buffer, to, request.length).set(request);
    const n = this.ask(() => this.exports.call(handle, op, request.length)) >>> 0;
    const from = this.ask(() => this.exports.mailbox(0)) >>> 0;
    const memory = this.exports.memory.buffer;
    if (from + n > memory.byteLength) {
      this.dead = new Error(`core.wasm has answered with ${n} bytes beyond its memory`);
      throw this.dead;
    }
    return new Uint8Array(memory, from, n).slice();
  }

  /**
   * Calls the guest. After a trap it is dead and every call says why.
   * @template T
   * @param {() => T} f
   * @returns {T}
   */
  ask(f) {
    if (this.dead !== null) throw this.dead;
    try {
      return f();
    } catch (e) {
      const reason = this.wasi.lastWords || (e instanceof Exit || e instanceof Error ? e.message : String(e));
      const why = /out of memory/.test(reason) ? 'the simulation needs more memory than a page can have; with fewer workers, ranks, blocks or requests it needs less' : `the simulation inside core.wasm has stopped: ${reason}`;
      this.dead = new Error(why, { cause: e });
      throw this.dead;
    }
  }
}
