// @ts-check
// gzip data of several members one after the other, which the decompression
// streams of browsers refuse. RFC 1951 and 1952, on data that is in memory.

/** Bytes of text that are given out at a time. */
const PART = 256 << 10;
const WINDOW = 32 << 10;

/** Data that ends too early. */
export class CutOff extends Error {}
/** Data that cannot be. */
export class Damaged extends Error {}

/** @param {string} why @returns {never} */
const damaged = (why) => {
  throw new Damaged(why);
};

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/** A canonical Huffman code: symbols in order, and how many there are of each length. @typedef {{counts: Uint16Array, symbols: Uint16Array}} Code */

/** @param {Uint8Array} lengths of the code of each symbol @returns {Code} */
function codeOf(lengths) {
  const counts = new Uint16Array(16);
  for (const n of lengths) counts[n]++;
  let left = 1;
  for (let n = 1; n < 16; n++) {
    left = left * 2 - counts[n];
    if (left < 0) damaged('a code has too many words');
  }
  const next = new Uint16Array(16);
  for (let n = 1; n < 15; n++) next[n + 1] = next[n] + counts[n];
  const symbols = new Uint16Array(lengths.length);
  lengths.forEach((n, symbol) => {
    if (n !== 0) symbols[next[n]++] = symbol;
  });
  return { counts, symbols };
}

const FIXED = [codeOf(Uint8Array.from({ length: 288 }, (_, s) => (s < 144 ? 8 : s < 256 ? 9 : s < 280 ? 7 : 8))), codeOf(new Uint8Array(30).fill(5))];

let crcTable = new Uint32Array();

/** The checksum of ZIP and gzip. @param {Uint8Array} bytes @param {number} [before] that of what came before */
export function crc32(bytes, before = 0) {
  if (crcTable.length === 0) {
    crcTable = Uint32Array.from({ length: 256 }, (_, n) => {
      for (let k = 0; k < 8; k++) n = n & 1 ? (n >>> 1) ^ 0xedb88320 : n >>> 1;
      return n;
    });
  }
  let c = ~before;
  for (let i = 0; i < bytes.length; i++) c = crcTable[(c ^ bytes[i]) & 0xff] ^ (c >>> 8);
  return ~c >>> 0;
}

class Inflater {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.bits = 0;
    this.held = 0; // of bits
    /** Text not given out yet, after the window that matches refer to. */
    this.out = new Uint8Array(WINDOW + PART + 65536);
    this.start = 0;
    this.end = 0;
    this.total = 0; // text of the member, for its trailer
    this.crc = 0;
  }

  byte() {
    if (this.at >= this.bytes.length) throw new CutOff();
    return this.bytes[this.at++];
  }

  /** @param {number} n at most 16 */
  take(n) {
    while (this.held < n) {
      this.bits |= this.byte() << this.held;
      this.held += 8;
    }
    const x = this.bits & ((1 << n) - 1);
    this.bits >>>= n;
    this.held -= n;
    return x;
  }

  /** @param {Code} code */
  symbol({ counts, symbols }) {
    let [word, first, index] = [0, 0, 0];
    for (let n = 1; n < 16; n++) {
      word |= this.take(1);
      const count = counts[n];
      if (word - count < first) return symbols[index + (word - first)];
      index += count;
      first = (first + count) << 1;
      word <<= 1;
    }
    return damaged('a word that no code has');
  }

  /** Text in parts, member by member. @returns {Generator<Uint8Array, void, void>} */
  *members() {
    do {
      this.header();
      [this.start, this.end, this.total, this.crc] = [0, 0, 0, 0];
      for (let last = 0; last === 0; ) {
        last = this.take(1);
        yield* this.block(this.take(2));
      }
      yield* this.give(0);
      this.trailer();
      while (this.at < this.bytes.length && this.bytes[this.at] === 0) this.at++; // padding
    } while (this.at < this.bytes.length);
  }

  header() {
    const from = this.at;
    if (this.byte() !== 0x1f || this.byte() !== 0x8b) damaged(from === 0 ? 'no gzip header' : 'something that is no gzip follows');
    if (this.byte() !== 8) damaged('another method than deflate');
    const flags = this.byte();
    this.at += 6;
    if (flags & 4) {
      const n = this.byte() | (this.byte() << 8);
      this.at += n;
    }
    for (const flag of [8, 16]) if (flags & flag) while (this.byte() !== 0);
    if (flags & 2) this.at += 2;
  }

  trailer() {
    [this.bits, this.held] = [0, 0];
    let [crc, size] = [0, 0];
    for (let i = 0; i < 4; i++) crc |= this.byte() << (8 * i);
    for (let i = 0; i < 4; i++) size |= this.byte() << (8 * i);
    if (crc >>> 0 !== this.crc) damaged('invalid checksum');
    if (size >>> 0 !== this.total % 2 ** 32) damaged('another length than it says');
  }

  /** Gives out text beyond a size and keeps the window. @param {number} most @returns {Generator<Uint8Array, void, void>} */
  *give(most) {
    if (this.end - this.start <= most) return;
    const part = this.out.slice(this.start, this.end);
    this.total += part.length;
    this.crc = crc32(part, this.crc);
    const keep = Math.min(this.end, WINDOW);
    this.out.copyWithin(0, this.end - keep, this.end);
    [this.start, this.end] = [keep, keep];
    yield part;
  }

  /** @param {number} kind @returns {Generator<Uint8Array, void, void>} */
  *block(kind) {
    if (kind === 3) damaged('a block of no kind');
    if (kind === 0) return yield* this.stored();
    const [literals, distances] = kind === 1 ? FIXED : this.codes();
    for (;;) {
      const s = this.symbol(literals);
      if (s < 256) this.out[this.end++] = s;
      else if (s === 256) return;
      else this.copy(s - 257, distances);
      if (this.end - this.start > PART) yield* this.give(PART);
    }
  }

  /** @returns {Generator<Uint8Array, void, void>} */
  *stored() {
    [this.bits, this.held] = [0, 0];
    const n = this.byte() | (this.byte() << 8);
    if ((n ^ 0xffff) !== (this.byte() | (this.byte() << 8))) damaged('a stored block of two lengths');
    if (this.at + n > this.bytes.length) throw new CutOff();
    this.out.set(this.bytes.subarray(this.at, this.at + n), this.end);
    this.at += n;
    this.end += n;
    yield* this.give(PART);
  }

  /** @param {number} s length symbol @param {Code} distances */
  copy(s, distances) {
    if (s >= LENGTHS.length) damaged('a length that there is not');
    const n = LENGTHS[s] + this.take(LENGTH_BITS[s]);
    const d = this.symbol(distances);
    if (d >= DISTANCES.length) damaged('a distance that there is not');
    const back = DISTANCES[d] + this.take(d < 2 ? 0 : (d >> 1) - 1);
    if (back > this.end) damaged('a distance to before the start');
    for (const to = this.end + n; this.end < to; this.end++) this.out[this.end] = this.out[this.end - back];
  }

  /** The codes of a block. */
  codes() {
    const [nLiterals, nDistances, nLengths] = [this.take(5) + 257, this.take(5) + 1, this.take(4) + 4];
    const lengths = new Uint8Array(19);
    for (let i = 0; i < nLengths; i++) lengths[CODE_ORDER[i]] = this.take(3);
    const code = codeOf(lengths);
    const all = new Uint8Array(nLiterals + nDistances);
    for (let i = 0; i < all.length; ) {
      const s = this.symbol(code);
      if (s < 16) {
        all[i++] = s;
        continue;
      }
      if (s === 16 && i === 0) damaged('nothing to repeat');
      const value = s === 16 ? all[i - 1] : 0;
      const n = s === 16 ? 3 + this.take(2) : s === 17 ? 3 + this.take(3) : 11 + this.take(7);
      if (i + n > all.length) damaged('more lengths than symbols');
      all.fill(value, i, i + n);
      i += n;
    }
    return [codeOf(all.subarray(0, nLiterals)), codeOf(all.subarray(nLiterals))];
  }
}

/**
 * The text of gzip data, in parts.
 * @param {Uint8Array} bytes
 * @returns {Generator<Uint8Array, void, void>}
 * @throws {CutOff | Damaged}
 */
export function gunzip(bytes) {
  return new Inflater(bytes).members();
}
