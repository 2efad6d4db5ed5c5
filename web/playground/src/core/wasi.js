// @ts-check
// What core.wasm asks of its surroundings (wasi_snapshot_preview1): clocks that
// advance, random bytes, one setting of its environment, and a place for its
// last words. It sees no file, no argument and no other environment.

const OK = 0;
const BADF = 8;
const NOSYS = 52;

/** Trades memory for time: the guest's heap is mostly what lives as long as the run. */
const ENVIRONMENT = ['GOGC=400'];

/** Most of what is kept of what a guest writes before it stops, in bytes. */
const MOST_SAID = 4 << 10;

/** The guest has ended itself. */
export class Exit extends Error {
  /** @param {number} code */
  constructor(code) {
    super(`exit status ${code}`);
    this.code = code;
  }
}

/** The imports of one instance. */
export class Wasi {
  constructor() {
    /** @type {WebAssembly.Memory | null} */
    this.memory = null;
    /** @type {number[]} */
    this.said = [];
  }

  /** The first line that the guest has written, '' if it has not. */
  get lastWords() {
    const text = new TextDecoder().decode(new Uint8Array(this.said)).trim();
    return text.split('\n', 1)[0];
  }

  view() {
    if (this.memory === null) throw new Error('core.wasm runs before its memory is known');
    return new DataView(this.memory.buffer);
  }

  /** @param {number} at @param {number} n */
  bytes(at, n) {
    const v = this.view();
    return new Uint8Array(v.buffer, at, n);
  }

  /** @returns {WebAssembly.Imports} */
  imports() {
    return {
      wasi_snapshot_preview1: {
        sched_yield: () => OK,
        proc_exit: (/** @type {number} */ code) => {
          throw new Exit(code);
        },
        args_get: () => OK,
        args_sizes_get: (/** @type {number} */ count, /** @type {number} */ size) => this.sizes([], count, size),
        environ_get: (/** @type {number} */ list, /** @type {number} */ text) => this.strings(ENVIRONMENT, list, text),
        environ_sizes_get: (/** @type {number} */ count, /** @type {number} */ size) => this.sizes(ENVIRONMENT, count, size),
        clock_time_get: (/** @type {number} */ id, /** @type {bigint} */ _precision, /** @type {number} */ out) => this.clock(id, out),
        fd_write: (/** @type {number} */ fd, /** @type {number} */ parts, /** @type {number} */ n, /** @type {number} */ out) => this.write(fd, parts, n, out),
        random_get: (/** @type {number} */ at, /** @type {number} */ n) => this.random(at, n),
        poll_oneoff: (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ n, /** @type {number} */ out) => this.poll(from, to, n, out),
      },
    };
  }

  /** @param {string[]} texts @param {number} count @param {number} size */
  sizes(texts, count, size) {
    const v = this.view();
    v.setUint32(count, texts.length, true);
    v.setUint32(size, texts.reduce((sum, t) => sum + t.length + 1, 0), true);
    return OK;
  }

  /** @param {string[]} texts ASCII @param {number} list @param {number} at */
  strings(texts, list, at) {
    const v = this.view();
    for (const t of texts) {
      v.setUint32(list, at, true);
      list += 4;
      for (let i = 0; i < t.length; i++) v.setUint8(at++, t.charCodeAt(i));
      v.setUint8(at++, 0);
    }
    return OK;
  }

  /** Nanoseconds of the time of day (0) or of a clock that only advances, never 0. @param {number} id @param {number} out */
  clock(id, out) {
    const ms = id === 0 ? Date.now() : performance.now();
    this.view().setBigUint64(out, BigInt(Math.trunc(ms * 1e6)) + 1n, true);
    return OK;
  }

  /** @param {number} fd @param {number} parts @param {number} n @param {number} out */
  write(fd, parts, n, out) {
    if (fd !== 1 && fd !== 2) return BADF;
    const v = this.view();
    let written = 0;
    for (let i = 0; i < n; i++) {
      const size = v.getUint32(parts + 8 * i + 4, true);
      const text = this.bytes(v.getUint32(parts + 8 * i, true), size);
      this.said.push(...text.subarray(0, MOST_SAID - Math.min(MOST_SAID, this.said.length)));
      written += size;
    }
    v.setUint32(out, written, true);
    return OK;
  }

  /** @param {number} at @param {number} n */
  random(at, n) {
    const most = 65536; // what one call gives
    for (let i = 0; i < n; i += most) crypto.getRandomValues(this.bytes(at + i, Math.min(most, n - i)));
    return OK;
  }

  /**
   * Says that every clock waited for has come. A guest that waits has nothing
   * else to do, and nothing may block here.
   * @param {number} from @param {number} to @param {number} n @param {number} out
   */
  poll(from, to, n, out) {
    const v = this.view();
    for (let i = 0; i < n; i++) {
      const asked = from + 48 * i;
      const event = to + 32 * i;
      const kind = v.getUint8(asked + 8);
      v.setBigUint64(event, v.getBigUint64(asked, true), true);
      v.setUint16(event + 8, kind === 0 ? OK : NOSYS, true);
      v.setUint8(event + 10, kind);
    }
    v.setUint32(out, n, true);
    return OK;
  }
}
