// @ts-check
// Profiles: arrays of float64 in NumPy archives. ZIP with stored and deflated
// entries, NPY versions 1 to 3, both byte orders, C and Fortran order. Nothing
// that an archive claims is believed before it is checked.

import { crc32 } from './gunzip.js';
import { checkAxis, checkValues, fault, isArchive, start } from './table.js';
import { quote } from './wording.js';

const MOST_VALUES = 1 << 22;
const MOST_HEADER = 1 << 16;
const MOST_DIMENSIONS = 64;
const ACCEPTED = "a .npz profile or a profiler's results directory is accepted";
const NAMES = ['prefill_isl', 'prefill_ttft_ms', 'decode_active_kv_tokens', 'decode_context_length', 'decode_itl'];

/** An entry of an archive. @typedef {{name: string, flags: number, method: number, crc: number, size: number, stored: number, at: number}} Entry */

/** What is wrong with an array: the rest of a sentence that begins with its name. */
class Flaw extends Error {}
/** @param {string} text @returns {never} */
const flaw = (text) => {
  throw new Flaw(text);
};
const ENDS = 'ends before all its values are there; a whole array is accepted';
const UNCOMPRESSED = 'cannot be decompressed; an undamaged file is accepted';

class Archive {
  /** @param {string} file @param {Uint8Array} bytes */
  constructor(file, bytes) {
    this.file = file;
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    /** @type {Entry[]} */
    this.entries = [];
    if (!this.list()) fault(file, 'is a damaged or truncated ZIP archive; a whole .npz file is accepted');
  }

  /** Reads the list of entries at the end; false if there is none. */
  list() {
    const v = this.view;
    let end = this.bytes.length - 22;
    while (end >= 0 && v.getUint32(end, true) !== 0x06054b50) end--;
    if (end < 0) return false;
    let [n, at] = [v.getUint16(end + 10, true), v.getUint32(end + 16, true)];
    if (at === 0xffffffff || n === 0xffff) {
      const locator = end - 20;
      if (locator < 0 || v.getUint32(locator, true) !== 0x07064b50) return false;
      const far = Number(v.getBigUint64(locator + 8, true));
      if (far + 56 > this.bytes.length || v.getUint32(far, true) !== 0x06064b50) return false;
      [n, at] = [Number(v.getBigUint64(far + 32, true)), Number(v.getBigUint64(far + 48, true))];
    }
    for (; n > 0; n--) {
      if (at + 46 > this.bytes.length || v.getUint32(at, true) !== 0x02014b50) return false;
      const [name, extra, comment] = [28, 30, 32].map((o) => v.getUint16(at + o, true));
      if (at + 46 + name + extra > this.bytes.length) return false;
      const entry = {
        name: new TextDecoder().decode(this.bytes.subarray(at + 46, at + 46 + name)).replace(/\.npy$/, ''),
        flags: v.getUint16(at + 8, true), method: v.getUint16(at + 10, true), crc: v.getUint32(at + 16, true),
        stored: v.getUint32(at + 20, true), size: v.getUint32(at + 24, true), at: v.getUint32(at + 42, true),
      };
      this.wide(entry, at + 46 + name, extra);
      this.entries.push(entry);
      at += 46 + name + extra + comment;
    }
    return true;
  }

  /** Sizes beyond 32 bits stand in an extra field. @param {Entry} e @param {number} at @param {number} size */
  wide(e, at, size) {
    const v = this.view;
    for (const end = at + size; at + 4 <= end; ) {
      const [id, n] = [v.getUint16(at, true), v.getUint16(at + 2, true)];
      at += 4;
      let from = at;
      const next = () => {
        from += 8;
        return from <= Math.min(at + n, this.bytes.length) ? Number(v.getBigUint64(from - 8, true)) : 0;
      };
      if (id === 1) {
        if (e.size === 0xffffffff) e.size = next();
        if (e.stored === 0xffffffff) e.stored = next();
        if (e.at === 0xffffffff) e.at = next();
      }
      at += n;
    }
  }

  /** @param {string} name */
  has(name) {
    return this.entries.some((e) => e.name === name);
  }

  /**
   * Reads an array of float64 with so many dimensions.
   * @param {string} name @param {number} dimensions
   * @returns {Promise<{shape: number[], data: number[]}>}
   */
  async floats(name, dimensions) {
    const entries = this.entries.filter((e) => e.name === name);
    if (entries.length === 0) return fault(this.file, `has no array ${name}; found ${this.found()}`);
    try {
      if (entries.length > 1) flaw(`stands ${entries.length} times in the archive; one array of that name is accepted`);
      return readArray(await this.content(entries[0]), dimensions);
    } catch (e) {
      if (e instanceof Flaw) return fault(this.file, `array ${name} ${e.message}`);
      throw e;
    }
  }

  /** The bytes of an entry, their checksum compared. @param {Entry} e @returns {Promise<Uint8Array>} */
  async content(e) {
    if ((e.flags & 1) !== 0) flaw('is encrypted; a plain array is accepted');
    if (e.method !== 0 && e.method !== 8) flaw(`is stored by ZIP method ${e.method}; methods 0 (stored) and 8 (deflated) are accepted`);
    const v = this.view;
    if (e.at + 30 > this.bytes.length || v.getUint32(e.at, true) !== 0x04034b50) flaw(UNCOMPRESSED);
    const from = e.at + 30 + v.getUint16(e.at + 26, true) + v.getUint16(e.at + 28, true);
    if (from + e.stored > this.bytes.length) flaw(ENDS);
    const stored = this.bytes.subarray(from, from + e.stored);
    const content = e.method === 0 ? stored : await inflate(stored, e.size);
    if (content.length < e.size) flaw(ENDS);
    if (crc32(content) !== e.crc) flaw('does not match its checksum; an undamaged file is accepted');
    return content;
  }

  found() {
    const names = [...new Set(this.entries.map((e) => plain(e.name)))];
    if (names.length === 0) return 'no arrays';
    return names.length > 12 ? [...names.slice(0, 12), `and ${names.length - 12} more`].join(', ') : names.join(', ');
  }
}

/** A name as it is if it is an identifier, else quoted. @param {string} name */
const plain = (name) => (/^[\w.-]{1,60}$/.test(name) ? name : quote(name));

/** @param {Uint8Array} stored @param {number} size that is claimed */
async function inflate(stored, size) {
  const stream = new Blob([/** @type {BlobPart} */ (stored)]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const reader = stream.getReader();
  /** @type {Uint8Array[]} */
  const parts = [];
  let n = 0;
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      parts.push(value);
      n += value.length;
      if (n > size) flaw('holds more bytes than its shape and dtype say; exactly that many are accepted');
    }
  } catch (e) {
    if (e instanceof Flaw) throw e;
    flaw(UNCOMPRESSED);
  }
  const out = new Uint8Array(n);
  let at = 0;
  for (const p of parts) {
    out.set(p, at);
    at += p.length;
  }
  return out;
}

/** @param {Uint8Array} bytes @param {number} dimensions */
function readArray(bytes, dimensions) {
  const h = readHeader(bytes);
  const type = /^([<>|=])f8$/.exec(h.descr);
  if (type === null) flaw(`has dtype ${/^[<>|=]./.test(h.descr) ? h.descr[0] + plain(h.descr.slice(1)) : plain(h.descr)}; dtype <f8 (float64) is accepted`);
  if (h.shape.length !== dimensions) flaw(`has shape ${shapeText(h.shape)}; a ${dimensions === 1 ? 'one' : 'two'}-dimensional array is accepted`);
  const n = h.shape.reduce((all, d) => all * d, 1);
  if (n > MOST_VALUES) flaw(`has shape ${shapeText(h.shape)}; at most ${MOST_VALUES} values are accepted`);
  const rest = bytes.length - h.end;
  if (rest < 8 * n) flaw(ENDS);
  if (rest > 8 * n) flaw('holds more bytes than its shape and dtype say; exactly that many are accepted');
  const v = new DataView(bytes.buffer, bytes.byteOffset + h.end, 8 * n);
  const little = type?.[1] !== '>';
  const data = Array.from({ length: n }, (_, i) => v.getFloat64(8 * i, little));
  return { shape: h.shape, data: h.fortran && dimensions === 2 ? transposed(data, h.shape) : data };
}

/** Fortran order in C order. @param {number[]} data @param {number[]} shape */
function transposed(data, [rows, columns]) {
  return data.map((_, i) => data[(i % columns) * rows + Math.floor(i / columns)]);
}

/** A shape as NumPy prints it. @param {number[]} shape */
const shapeText = (shape) => `(${shape.join(', ')}${shape.length === 1 ? ',' : ''})`;

/** @param {Uint8Array} bytes */
function readHeader(bytes) {
  const v = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 8) flaw(ENDS);
  if (start(bytes, 6) !== '"\\x93NUMPY"') flaw(`is no NPY file: it starts with ${start(bytes, 6)}; an array saved by NumPy is accepted`);
  const major = bytes[6];
  if (major < 1 || major > 3) flaw(`has NPY version ${major}; versions 1, 2 and 3 are accepted`);
  const from = major === 1 ? 10 : 12;
  if (bytes.length < from) flaw(ENDS);
  const length = major === 1 ? v.getUint16(8, true) : v.getUint32(8, true);
  if (length > MOST_HEADER) flaw(`has a header of ${length} bytes; at most ${MOST_HEADER} are accepted`);
  if (from + length > bytes.length) flaw(ENDS);
  const text = String.fromCharCode(...bytes.subarray(from, from + length));
  const h = parseHeader(text);
  if (h === null) return flaw(`has a damaged NPY header ${quote(text)}; descr, fortran_order and shape are accepted`);
  return { ...h, end: from + length };
}

/** The dictionary of a header, and no other Python. @param {string} text @returns {{descr: string, fortran: boolean, shape: number[]} | null} */
function parseHeader(text) {
  const rest = { text };
  /** @param {RegExp} pattern */
  const take = (pattern) => {
    const m = pattern.exec(rest.text);
    if (m !== null) rest.text = rest.text.slice(m[0].length);
    return m;
  };
  let [descr, fortran] = ['', false];
  /** @type {number[]} */
  let shape = [];
  const seen = new Set();
  if (take(/^\s*\{/) === null) return null;
  for (let more = true; take(/^\s*\}/) === null; ) {
    const key = take(/^\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*:/);
    if (!more || key === null || seen.has(key[1] ?? key[2])) return null;
    seen.add(key[1] ?? key[2]);
    /** @type {RegExpExecArray | null} */
    let m = null;
    if ((key[1] ?? key[2]) === 'descr') {
      m = take(/^\s*(?:'([^'\\]*)'|"([^"\\]*)")/);
      if (m !== null) descr = m[1] ?? m[2];
      else if ((m = take(/^\s*\[(?:[^[\]'"]|'[^'\\]*'|"[^"\\]*")*\]/)) !== null) descr = 'record';
    } else if ((key[1] ?? key[2]) === 'fortran_order') {
      m = take(/^\s*(True|False)/);
      fortran = m?.[1] === 'True';
    } else if ((key[1] ?? key[2]) === 'shape') {
      m = take(/^\s*\(\s*((?:\d+L?\s*,\s*)*(?:\d+L?\s*)?)\)/);
      shape = (m?.[1].match(/\d+/g) ?? []).map(Number);
    }
    if (m === null) return null;
    more = take(/^\s*,/) !== null;
  }
  return /^\s*$/.test(rest.text) && seen.size === 3 && shape.length <= MOST_DIMENSIONS ? { descr, fortran, shape } : null;
}

/**
 * Reads a profile: its arrays by key of a frame below engine.timing.
 * @param {string} file its name, for sentences
 * @param {Uint8Array} bytes
 * @returns {Promise<Record<string, number[]>>}
 * @throws {import('./table.js').FileFault}
 */
export async function parseProfile(file, bytes) {
  if (!isArchive(bytes)) noProfile(file, bytes);
  const a = new Archive(file, bytes);
  for (const [raw, whole] of [['prefill_ttft', 'prefill_ttft_ms'], ['z_itl', 'decode_itl']]) {
    if (a.has(raw) && !a.has(whole)) {
      fault(file, `has array ${raw}, so it is one half of a profiler's results; their directory is accepted, or a profile with arrays ${NAMES.slice(0, 4).join(', ')} and ${NAMES[4]}`);
    }
  }
  const named = [];
  for (const name of NAMES.slice(0, 4)) named.push({ name, data: (await a.floats(name, 1)).data, axes: /** @type {import('./table.js').Arrays} */ ([]) });
  const [isl, ttft, kv, context] = named;
  ttft.axes = [isl];
  const { shape, data } = await a.floats(NAMES[4], 2);
  const want = [kv.data.length, context.data.length];
  if (shape[0] !== want[0] || shape[1] !== want[1]) {
    fault(file, `array ${NAMES[4]} has shape ${shapeText(shape)}; ${shapeText(want)} is accepted: a row for each value of ${kv.name}, a column for each of ${context.name}`);
  }
  checkAxis(file, isl);
  checkValues(file, ttft);
  checkAxis(file, kv);
  checkAxis(file, context);
  checkValues(file, { name: NAMES[4], data, axes: [kv, context] });
  return {
    'profile.prefill_isl': isl.data, 'profile.prefill_ttft_ms': ttft.data, 'profile.decode_active_kv_tokens': kv.data,
    'profile.decode_context_length': context.data, 'profile.decode_itl_ms': data,
  };
}

/** @param {string} file @param {Uint8Array} bytes */
function noProfile(file, bytes) {
  if (bytes.length === 0) fault(file, `is empty; ${ACCEPTED}`);
  if (/^[ \t\r\n]*\{/.test(String.fromCharCode(...bytes.subarray(0, 512)))) fault(file, `is a JSON object, as grids are; ${ACCEPTED}`);
  fault(file, `starts with ${start(bytes, 16)}; ${ACCEPTED}`);
}
