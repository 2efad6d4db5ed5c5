// @ts-check
// Grids: predicted durations for one model on one GPU, in JSON that is read
// strictly.

import { checkAxis, checkValues, fault, isArchive, list, values } from './table.js';
import { nearest, quote } from './wording.js';

/** @typedef {import('./table.js').Named} Named */

const MOST_BYTES = 16 << 20;
const MOST_DEEP = 16;
const MOST_TENSOR = 2 ** 32 - 1;
const MOST_32 = 2 ** 31 - 1;
const MOST_SLOTS = Number.MAX_SAFE_INTEGER;

const FIELDS = [
  'backend', 'backend_version', 'system', 'model', 'tp', 'num_gpu_blocks', 'block_size', 'prefill', 'decode', 'pp', 'moe_tp', 'moe_ep', 'attention_dp',
  'precision', 'aiconfigurator_core', 'exporter', 'source',
];
const BLOCK_SIZES = /** @type {Record<string, number>} */ ({ vllm: 64, sglang: 1, trtllm: 32 });

/**
 * What a grid says.
 * @typedef {object} Grid
 * @property {Record<string, number[]>} columns by key of a frame below engine.timing
 * @property {string} backend '' if it does not say, as of the next three
 * @property {string} backendVersion
 * @property {string} system
 * @property {string} model
 * @property {number} tp GPUs of a rank; 0 if it does not say
 * @property {number} numGPUBlocks KV capacity of a rank; 0 if it does not say
 * @property {number} blockSize tokens of those blocks
 */

/** A JSON value: numbers keep their digits, objects the order of their names. */
class Literal {
  /** @param {string} digits */
  constructor(digits) {
    this.digits = digits;
  }
}

/** Reads JSON without losing what JSON.parse does. */
class Reader {
  /** @param {string} file @param {string} text */
  constructor(file, text) {
    this.file = file;
    this.text = text;
    this.at = 0;
  }

  /** @param {string} why @returns {never} */
  stop(why) {
    const line = 1 + (this.text.slice(0, this.at).match(/\n/g) ?? []).length;
    return fault(this.file, `line ${line}: ${why}; one JSON object is accepted`);
  }

  space() {
    while (' \t\r\n'.includes(this.text[this.at] ?? 'x')) this.at++;
  }

  /** @param {RegExp} pattern sticky */
  take(pattern) {
    pattern.lastIndex = this.at;
    const m = pattern.exec(this.text);
    if (m === null) return null;
    this.at = pattern.lastIndex;
    return m[0];
  }

  document() {
    const v = this.value(0, '');
    this.space();
    if (this.at < this.text.length) this.stop('something follows the object');
    return v;
  }

  /** @param {number} depth @param {string} path @returns {any} */
  value(depth, path) {
    if (depth > MOST_DEEP) this.stop(`values are nested more than ${MOST_DEEP} deep`);
    this.space();
    const c = this.text[this.at];
    if (c === undefined) this.stop('the text ends too early');
    if (c === '{') return this.object(depth, path);
    if (c === '[') return this.array(depth, path);
    if (c === '"') return this.string();
    const number = this.take(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number !== null) return new Literal(number);
    const word = this.take(/true|false|null/y);
    if (word === null) this.stop(`found ${quote(c)} where a value belongs`);
    return word === 'null' ? null : word === 'true';
  }

  string() {
    const literal = this.take(/"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (literal === null) return this.stop('a text does not end, or has a character that JSON does not take');
    return /** @type {string} */ (JSON.parse(literal));
  }

  /** After a value: whether another follows. @param {string} end */
  more(end) {
    this.space();
    const c = this.text[this.at];
    if (c === undefined) this.stop('the text ends too early');
    if (c !== ',' && c !== end) this.stop(`found ${quote(c)} after a value`);
    this.at++;
    return c === ',';
  }

  /** @param {string} end */
  empty(end) {
    this.at++;
    this.space();
    if (this.text[this.at] !== end) return false;
    this.at++;
    return true;
  }

  /** @param {number} depth @param {string} path */
  array(depth, path) {
    /** @type {unknown[]} */
    const out = [];
    if (this.empty(']')) return out;
    do out.push(this.value(depth + 1, path));
    while (this.more(']'));
    return out;
  }

  /** @param {number} depth @param {string} path */
  object(depth, path) {
    /** @type {Map<string, unknown>} */
    const out = new Map();
    if (this.empty('}')) return out;
    do {
      this.space();
      if (this.text[this.at] !== '"') this.stop('a name in double quotes belongs here');
      const name = this.string();
      const at = join(path, name);
      if (out.has(name)) this.stop(`field ${quote(at)} stands twice`);
      this.space();
      if (this.text[this.at] !== ':') this.stop("':' belongs after a name");
      this.at++;
      out.set(name, this.value(depth + 1, at));
    } while (this.more('}'));
    return out;
  }
}

/** @param {string} path @param {string} name */
const join = (path, name) => (path === '' ? name : `${path}.${name}`);

/** A value as sentences quote it. @param {unknown} v */
function found(v) {
  if (v === null || typeof v === 'boolean') return String(v);
  if (v instanceof Literal) return v.digits.length > 40 ? `a number of ${v.digits.length} digits` : v.digits;
  if (typeof v === 'string') return quote(v);
  return Array.isArray(v) ? 'an array' : 'an object';
}

/** @param {string} file @param {unknown} v @param {string} at @param {string[]} known @returns {Map<string, unknown>} */
function object(file, v, at, known) {
  if (!(v instanceof Map)) return fault(file, `${at} is ${found(v)}; an object is accepted`);
  for (const name of v.keys()) {
    if (known.includes(name)) continue;
    const near = nearest(name, known);
    fault(file, `unknown field ${quote(join(at === 'the file' ? '' : at, name))}${near === '' ? '' : ` (did you mean ${near}?)`}; ${list(known)} are accepted`);
  }
  return v;
}

/** @param {string} file @param {unknown} v @param {string} at @returns {number[]} */
function numbers(file, v, at) {
  if (!Array.isArray(v)) return fault(file, `${at} is ${found(v)}; an array of numbers is accepted`);
  return v.map((e, i) => {
    if (!(e instanceof Literal)) return fault(file, `${at}[${i}] is ${found(e)}; a number is accepted`);
    const x = Number(e.digits);
    return Number.isFinite(x) ? x : fault(file, `${at}[${i}] is ${found(e)}; a number within the range of float64 is accepted`);
  });
}

/** @param {string} file @param {unknown} v @param {string} at @param {number} most */
function count(file, v, at, most) {
  const n = v instanceof Literal && /^\d+$/.test(v.digits) ? Number(v.digits) : 0;
  return n >= 1 && n <= most ? n : fault(file, `${at} is ${found(v)}; a whole number from 1 to ${most} is accepted`);
}

/** @param {string} file @param {Map<string, unknown>} top @param {string} name @param {number} most 0 if it is not given */
function given(file, top, name, most) {
  const v = top.get(name) ?? null;
  return v === null ? 0 : count(file, v, name, most);
}

/** @param {string} file @param {Map<string, unknown>} top @param {string} name */
function text(file, top, name) {
  const v = top.get(name) ?? null;
  if (v === null) return '';
  return typeof v === 'string' ? v : fault(file, `${name} is ${found(v)}; a text is accepted`);
}

/** @param {string} file @param {unknown} v @param {string} at @param {Named[]} axes @param {number[]} out */
function block(file, v, at, axes, out) {
  if (!Array.isArray(v)) return fault(file, `${at} is ${found(v)}; an array is accepted`);
  const want = axes[0].data.length;
  if (v.length !== want) fault(file, `${at} has ${values(v.length)}; ${want} are accepted, one for each of ${axes[0].name}`);
  if (axes.length === 1) out.push(...numbers(file, v, at));
  else v.forEach((row, i) => block(file, row, `${at}[${i}]`, axes.slice(1), out));
}

/** @param {string} file @param {Map<string, unknown>} top @param {string} name @param {string[]} axes @returns {Named} the durations over their axes */
function plane(file, top, name, axes) {
  const known = [...axes, 'ms'];
  if (!top.has(name)) fault(file, `has no field ${name}; an object with ${list(known)} is accepted`);
  const m = object(file, top.get(name), name, known);
  for (const f of known) if (!m.has(f)) fault(file, `has no field ${name}.${f}; an object with ${list(known)} is accepted`);
  const named = axes.map((a) => ({ name: `${name}.${a}`, data: numbers(file, m.get(a), `${name}.${a}`), axes: [] }));
  /** @type {number[]} */
  const data = [];
  block(file, m.get('ms'), `${name}.ms`, named, data);
  return { name: `${name}.ms`, data, axes: named };
}

/**
 * Reads a grid.
 * @param {string} file its name, for sentences
 * @param {Uint8Array} bytes
 * @returns {Grid}
 * @throws {import('./table.js').FileFault}
 */
export function parseGrid(file, bytes) {
  if (bytes.length > MOST_BYTES) fault(file, `is larger than ${MOST_BYTES >> 20} MiB; a smaller JSON file is accepted`);
  if (isArchive(bytes)) fault(file, 'is a ZIP archive, as profiles are; a grid in JSON is accepted');
  const top = object(file, new Reader(file, new TextDecoder().decode(bytes)).document(), 'the file', FIELDS);
  const [backend, backendVersion, system, model] = ['backend', 'backend_version', 'system', 'model'].map((name) => text(file, top, name));
  if (backend !== '' && !(backend in BLOCK_SIZES)) fault(file, `backend is ${quote(backend)}; "vllm", "sglang" or "trtllm" is accepted`);
  const [tp] = ['tp', 'pp', 'moe_tp', 'moe_ep', 'attention_dp'].map((name) => given(file, top, name, MOST_TENSOR));
  const numGPUBlocks = given(file, top, 'num_gpu_blocks', MOST_32);
  let blockSize = 0;
  if (numGPUBlocks > 0) {
    blockSize = given(file, top, 'block_size', MOST_32) || BLOCK_SIZES[backend] || 0;
    if (blockSize === 0) fault(file, `num_gpu_blocks is ${numGPUBlocks} blocks of unknown size; block_size or backend is accepted beside it`);
    if (BigInt(numGPUBlocks) * BigInt(blockSize) > BigInt(MOST_SLOTS)) fault(file, `num_gpu_blocks is ${numGPUBlocks} blocks of ${blockSize} tokens; at most ${MOST_SLOTS} tokens are accepted`);
  }
  const prefill = plane(file, top, 'prefill', ['batch', 'isl', 'prefix']);
  const decode = plane(file, top, 'decode', ['batch', 'context']);
  for (const axis of [...prefill.axes, ...decode.axes]) checkAxis(file, axis, true);
  checkValues(file, prefill, true);
  checkValues(file, decode, true);
  /** @type {Record<string, number[]>} */
  const columns = {};
  for (const a of [...prefill.axes, prefill, ...decode.axes, decode]) columns[`grid.${a.name.replace('.', '_')}`] = a.data;
  return { columns, backend, backendVersion, system, model, tp, numGPUBlocks, blockSize };
}

