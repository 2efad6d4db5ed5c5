// @ts-check
// Traces as streams of text: files, bytes and addresses, compressed or not.

import { CutOff, Damaged, gunzip } from './gunzip.js';
import { complain } from './wording.js';
import { foundText } from './tracewords.js';

/** @typedef {import('./types.js').Format} Format */
/** @typedef {import('./types.js').Source} Source */

/** What is said of a file that a browser does not read, or no longer. */
export const GONE = 'cannot be read: it has changed since it was given, is gone, or is a folder; want a file, chosen or dropped again';

/** What is stored, and how it is coded. */
export class Trace {
  /** @param {Source} source @param {string} name for sentences */
  constructor(source, name) {
    this.source = source;
    this.name = name;
    /** Bytes as they are stored, -1: not known. */
    this.total = -1;
    /** Bytes read so far, as they are stored. */
    this.read = 0;
    this.coding = '';
  }

  /**
   * The text in parts of any size.
   * @returns {AsyncGenerator<Uint8Array, void, void>}
   */
  async *chunks() {
    const stream = await this.open();
    const counted = stream.pipeThrough(counter((n) => (this.read += n)));
    const reader = counted.getReader();
    const next = () => reader.read().catch((e) => this.unreadable(e));
    try {
      const head = await atLeast(next, 4);
      this.coding = this.codingOf(head);
      const rest = joined(head, next);
      if (this.coding === '') {
        yield* rest;
      } else {
        yield* this.inflated(rest);
      }
    } finally {
      await reader.cancel().catch(() => {}); // nobody wants the rest
    }
  }

  /** @returns {Promise<ReadableStream<Uint8Array>>} */
  async open() {
    const s = this.source;
    if (typeof s !== 'string') {
      const blob = s instanceof Blob ? s : new Blob([/** @type {BlobPart} */ (s)]);
      this.total = blob.size;
      return /** @type {ReadableStream<Uint8Array>} */ (blob.stream());
    }
    /** @type {Response} */
    let response;
    try {
      response = await fetch(s);
    } catch (e) {
      return complain('trace', `${this.name} cannot be fetched: ${e instanceof Error ? e.message : e}`);
    }
    if (!response.ok || response.body === null) return complain('trace', `${this.name} cannot be fetched: the server says ${response.status} ${response.statusText}`.trim());
    const size = response.headers.get('content-length');
    if (size !== null && response.headers.get('content-encoding') === null) this.total = Number(size);
    return response.body;
  }

  /** Browsers have sentences of their own for this, as "network error". @param {unknown} e @returns {never} */
  unreadable(e) {
    if (typeof this.source === 'string') return complain('trace', `${this.name} cannot be fetched: ${e instanceof Error ? e.message : e}`);
    return complain('trace', `${this.name} ${GONE}`);
  }

  /** @param {Uint8Array} head */
  codingOf(head) {
    const begins = (/** @type {number[]} */ ...magic) => head.length >= magic.length && magic.every((b, i) => head[i] === b);
    if (begins(0x1f, 0x8b)) return 'gzip';
    if (begins(0x28, 0xb5, 0x2f, 0xfd)) complain('trace', `${this.name} is compressed with zstd, which browsers do not read; want gzip or plain text`);
    for (const [suffix, coding] of [['.gz', 'gzip'], ['.zst', 'zstd']]) {
      if (head.length > 0 && this.name.toLowerCase().endsWith(suffix)) {
        complain('trace', `the name ends in ${suffix}, but found ${foundText(head.subarray(0, coding === 'gzip' ? 2 : 4))} at the start of the file; want ${coding} data`);
      }
    }
    return '';
  }

  /** @param {AsyncGenerator<Uint8Array, void, void>} stored @returns {AsyncGenerator<Uint8Array, void, void>} */
  async *inflated(stored) {
    const source = new ReadableStream({
      async pull(controller) {
        const { value, done } = await stored.next();
        if (done) controller.close();
        else controller.enqueue(value);
      },
    });
    const text = source.pipeThrough(/** @type {ReadableWritablePair<Uint8Array, Uint8Array>} */ (/** @type {unknown} */ (new DecompressionStream('gzip'))));
    const reader = text.getReader();
    let given = 0;
    for (;;) {
      /** @type {ReadableStreamReadResult<Uint8Array>} */
      let part;
      try {
        part = await reader.read();
      } catch {
        return yield* this.again(given);
      }
      if (part.done) return;
      given += part.value.length;
      yield part.value;
    }
  }

  /**
   * Goes on where a decompression stream has stopped: at the end of the first of
   * several members, or where the data are damaged.
   * @param {number} given bytes of text that it has given
   * @returns {AsyncGenerator<Uint8Array, void, void>}
   */
  async *again(given) {
    const bytes = new Uint8Array(await new Response(await this.open()).arrayBuffer().catch((e) => this.unreadable(e)));
    this.read = bytes.length;
    try {
      for (const part of gunzip(bytes)) {
        if (part.length > given) yield part.subarray(given);
        given = Math.max(given - part.length, 0);
      }
    } catch (e) {
      if (e instanceof CutOff) complain('trace', 'the gzip data end too early; want the complete file');
      if (e instanceof Damaged) complain('trace', `the gzip data are damaged (${e.message})`);
      throw e;
    }
  }
}

/** @param {(n: number) => void} tell @returns {TransformStream<Uint8Array, Uint8Array>} */
function counter(tell) {
  return new TransformStream({
    transform(chunk, controller) {
      tell(chunk.length);
      controller.enqueue(chunk);
    },
  });
}

/** @typedef {() => Promise<ReadableStreamReadResult<Uint8Array>>} Next */

/** The first bytes, that many at least if there are. @param {Next} next @param {number} n */
async function atLeast(next, n) {
  let head = new Uint8Array();
  while (head.length < n) {
    const { value, done } = await next();
    if (done) break;
    head = concatenated([head, value]);
  }
  return head;
}

/** @param {Uint8Array} head @param {Next} next @returns {AsyncGenerator<Uint8Array, void, void>} */
async function* joined(head, next) {
  if (head.length > 0) yield head;
  for (;;) {
    const { value, done } = await next();
    if (done) return;
    yield value;
  }
}

/** @param {Uint8Array[]} parts */
export function concatenated(parts) {
  const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}
