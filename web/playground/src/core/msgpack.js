// @ts-check
// The msgpack that frames are written in: one flat map with text keys and
// booleans, numbers, texts and bins. See docs/frames.md.

/** @typedef {boolean | number | bigint | string | Uint8Array} Value bigint where a number would not be exact */
/** @typedef {Record<string, Value>} Pairs */

/** Frames are of this version. */
export const VERSION = 1;

/** Bytes that are no such map. */
export class BadFrame extends Error {
  /** @param {number} at offset of the byte that does not fit */
  constructor(at) {
    super(`at byte ${at} it is no map of flat values`);
    this.at = at;
  }
}

const utf8 = new TextEncoder();
const text = new TextDecoder('utf-8', { fatal: true });

class Writer {
  /** @param {number} room */
  constructor(room) {
    this.bytes = new Uint8Array(room);
    this.view = new DataView(this.bytes.buffer);
    this.at = 0;
  }

  /** @param {number} n */
  grow(n) {
    if (this.at + n <= this.bytes.length) return;
    const larger = new Uint8Array(Math.max(2 * this.bytes.length, this.at + n));
    larger.set(this.bytes.subarray(0, this.at));
    this.bytes = larger;
    this.view = new DataView(larger.buffer);
  }

  /** A code and a number after it. @param {number} code @param {0 | 1 | 2 | 4} width @param {number} n */
  head(code, width, n) {
    this.grow(1 + width);
    this.bytes[this.at++] = code;
    if (width === 1) this.view.setUint8(this.at, n);
    else if (width === 2) this.view.setUint16(this.at, n);
    else if (width === 4) this.view.setUint32(this.at, n);
    this.at += width;
  }

  /** A code and eight bytes after it. @param {number} code @param {(at: number) => void} set */
  wide(code, set) {
    this.grow(9);
    this.bytes[this.at] = code;
    set(this.at + 1);
    this.at += 9;
  }

  /** @param {Uint8Array} bytes */
  raw(bytes) {
    this.grow(bytes.length);
    this.bytes.set(bytes, this.at);
    this.at += bytes.length;
  }

  /** @param {number} n */
  map(n) {
    if (n < 16) this.head(0x80 | n, 0, 0);
    else this.head(0xde, 2, n);
  }

  /** @param {string} s */
  text(s) {
    const bytes = utf8.encode(s);
    const n = bytes.length;
    if (n < 32) this.head(0xa0 | n, 0, 0);
    else if (n < 0x100) this.head(0xd9, 1, n);
    else if (n < 0x10000) this.head(0xda, 2, n);
    else this.head(0xdb, 4, n);
    this.raw(bytes);
  }

  /** @param {Uint8Array} bytes */
  bin(bytes) {
    const n = bytes.length;
    if (n < 0x100) this.head(0xc4, 1, n);
    else if (n < 0x10000) this.head(0xc5, 2, n);
    else this.head(0xc6, 4, n);
    this.raw(bytes);
  }

  /** @param {number} x */
  number(x) {
    if (!Number.isSafeInteger(x) || Object.is(x, -0)) this.wide(0xcb, (at) => this.view.setFloat64(at, x));
    else if (x >= 0 && x <= 0xffffffff) this.natural(x);
    else if (x < 0 && x >= -0x80000000) this.negative(x);
    else this.whole(BigInt(x));
  }

  /** @param {number} n */
  natural(n) {
    if (n < 0x80) this.head(n, 0, 0);
    else if (n < 0x100) this.head(0xcc, 1, n);
    else if (n < 0x10000) this.head(0xcd, 2, n);
    else this.head(0xce, 4, n);
  }

  /** @param {number} n */
  negative(n) {
    if (n >= -32) this.head(n & 0xff, 0, 0);
    else if (n >= -0x80) this.head(0xd0, 1, n);
    else if (n >= -0x8000) this.head(0xd1, 2, n);
    else this.head(0xd2, 4, n);
  }

  /** @param {bigint} n */
  whole(n) {
    if (n >= 0n) this.wide(0xcf, (at) => this.view.setBigUint64(at, n));
    else this.wide(0xd3, (at) => this.view.setBigInt64(at, n));
  }

  /** @param {Value} v */
  value(v) {
    if (typeof v === 'boolean') this.head(v ? 0xc3 : 0xc2, 0, 0);
    else if (typeof v === 'number') this.number(v);
    else if (typeof v === 'bigint') this.whole(v);
    else if (typeof v === 'string') this.text(v);
    else this.bin(v);
  }
}

/**
 * Writes a frame of the pairs and the version.
 * @param {Pairs} pairs
 * @returns {Uint8Array}
 */
export function encode(pairs) {
  const keys = Object.keys(pairs);
  let room = 64;
  for (const k of keys) {
    const v = pairs[k];
    room += k.length + 16 + (v instanceof Uint8Array ? v.length : 0);
  }
  const w = new Writer(room);
  w.map(keys.length + 1);
  w.text('v');
  w.number(VERSION);
  for (const k of keys) {
    w.text(k);
    w.value(pairs[k]);
  }
  return w.bytes.subarray(0, w.at);
}

class Reader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.at = 0;
    this.start = 0; // of the value that is read
  }

  /** @param {number} n */
  skip(n) {
    if (n > this.bytes.length - this.at) throw new BadFrame(this.start);
    const at = this.at;
    this.at += n;
    return at;
  }

  /** @param {number} width */
  size(width) {
    const at = this.skip(width);
    return width === 1 ? this.view.getUint8(at) : width === 2 ? this.view.getUint16(at) : this.view.getUint32(at);
  }

  /** @param {number} n */
  part(n) {
    const at = this.skip(n);
    return this.bytes.subarray(at, at + n);
  }

  /** @param {number} n */
  text(n) {
    try {
      return text.decode(this.part(n));
    } catch {
      throw new BadFrame(this.start);
    }
  }

  pairs() {
    this.start = this.at;
    const head = this.size(1);
    if (head >= 0x80 && head < 0x90) return head & 15;
    if (head === 0xde) return this.size(2);
    if (head === 0xdf) return this.size(4);
    throw new BadFrame(this.start);
  }

  /** @returns {Value} */
  value() {
    this.start = this.at;
    const head = this.size(1);
    if (head < 0x80) return head;
    if (head >= 0xe0) return head - 0x100;
    if (head >= 0xa0 && head < 0xc0) return this.text(head & 31);
    switch (head) {
      case 0xc2:
      case 0xc3:
        return head === 0xc3;
      case 0xc4:
      case 0xc5:
      case 0xc6:
        return this.part(this.size(1 << (head - 0xc4)));
      case 0xca:
        return this.view.getFloat32(this.skip(4));
      case 0xcb:
        return this.view.getFloat64(this.skip(8));
      case 0xcc:
      case 0xcd:
      case 0xce:
        return this.size(1 << (head - 0xcc));
      case 0xcf:
        return narrow(this.view.getBigUint64(this.skip(8)));
      case 0xd0:
        return this.view.getInt8(this.skip(1));
      case 0xd1:
        return this.view.getInt16(this.skip(2));
      case 0xd2:
        return this.view.getInt32(this.skip(4));
      case 0xd3:
        return narrow(this.view.getBigInt64(this.skip(8)));
      case 0xd9:
      case 0xda:
      case 0xdb:
        return this.text(this.size(1 << (head - 0xd9)));
    }
    throw new BadFrame(this.start);
  }
}

/** @param {bigint} n */
function narrow(n) {
  const x = Number(n);
  return Number.isSafeInteger(x) ? x : n;
}

/**
 * Reads a frame. Bins are views of its bytes. The version is left out.
 * @param {Uint8Array} bytes
 * @returns {Pairs}
 * @throws {BadFrame}
 */
export function decode(bytes) {
  const r = new Reader(bytes);
  /** @type {Pairs} */
  const pairs = Object.create(null);
  let version = /** @type {Value} */ (0);
  for (let n = r.pairs(); n > 0; n--) {
    const key = r.value();
    if (typeof key !== 'string') throw new BadFrame(r.start);
    const v = r.value();
    if (key === 'v') version = v;
    else if (key in pairs) throw new BadFrame(r.start);
    else pairs[key] = v;
  }
  if (r.at !== bytes.length) throw new BadFrame(r.at);
  if (version !== VERSION) throw new Error(`the frame is of version ${version}, want ${VERSION}`);
  return pairs;
}

/** A column of f64. @param {Value | undefined} bin @returns {Float64Array} */
export function floats(bin) {
  return new Float64Array(aligned(bin, 8));
}

/** A column of i32. @param {Value | undefined} bin @returns {Int32Array} */
export function ints(bin) {
  return new Int32Array(aligned(bin, 4));
}

/** A copy that begins where typed arrays may. @param {Value | undefined} bin @param {number} size */
function aligned(bin, size) {
  if (!(bin instanceof Uint8Array) || bin.length % size !== 0) throw new TypeError('the value is no column of this type');
  return bin.slice().buffer;
}

/** The bin of a column. @param {ArrayLike<number>} numbers */
export function floatBin(numbers) {
  return new Uint8Array(Float64Array.from(numbers).buffer);
}
