// @ts-check
// How sentences are worded: what was found, near names, quotations, lists of
// complaints. The wording is that of the command line.

/** @typedef {import('./types.js').Complaint} Complaint */

/** Something that a person can put right. */
export class ComplaintError extends Error {
  /** @param {Complaint[]} complaints one or more */
  constructor(complaints) {
    super(complaints[0].sentence);
    this.name = 'ComplaintError';
    this.complaints = complaints;
  }
}

/** Complaints as they come up. */
export class ComplaintList {
  constructor() {
    /** @type {Complaint[]} */
    this.list = [];
  }

  /** @param {string} path @param {string} sentence */
  add(path, sentence) {
    this.list.push({ path, sentence });
  }

  /** @throws {ComplaintError} if there are any */
  settle() {
    if (this.list.length > 0) throw new ComplaintError(this.list);
  }
}

/** @param {string} path @param {string} sentence @returns {never} */
export function complain(path, sentence) {
  throw new ComplaintError([{ path, sentence }]);
}

/** What a JSON value is, for "x is …; y is accepted". @param {unknown} x */
export function found(x) {
  if (x === null || x === undefined) return 'null';
  if (typeof x === 'boolean') return `the boolean ${x}`;
  if (typeof x === 'number') return `the number ${Number.isFinite(x) ? JSON.stringify(x) : x}`;
  if (typeof x === 'bigint') return `the number ${x}`;
  if (typeof x === 'string') return `the text ${quote(x)}`;
  return Array.isArray(x) ? 'an array' : 'an object';
}

/** A choice: "a", "b" or "c". Words in others stay unquoted. @param {string[]} words @param {...string} others */
export function oneOf(words, ...others) {
  const all = [...words.map((w) => `"${w}"`), ...others];
  const last = all.pop();
  return all.length === 0 ? String(last) : `${all.join(', ')} or ${last}`;
}

const utf8 = new TextEncoder();
const MOST_QUOTED = 60; // bytes

/** Puts a text in double quotes, escapes what would break a line, and shortens it. @param {string} s */
export function quote(s) {
  if (utf8.encode(s).length <= MOST_QUOTED) return escaped(s);
  let [cut, size] = ['', 0];
  for (const c of s) {
    size += utf8.encode(c).length;
    if (size > MOST_QUOTED) break;
    cut += c;
  }
  return `${escaped(cut)}...`;
}

/** @type {Record<string, string>} */
const ESCAPES = { '"': '\\"', '\\': '\\\\', '\x07': '\\a', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\v': '\\v' };

/** @param {string} s */
function escaped(s) {
  let out = '"';
  for (const c of s) out += ESCAPES[c] ?? visible(c);
  return out + '"';
}

/** A character, or its escape if it is not printable. @param {string} c */
export function visible(c) {
  if (c === ' ' || /^[\p{L}\p{M}\p{N}\p{P}\p{S}]$/u.test(c)) return c;
  const n = /** @type {number} */ (c.codePointAt(0));
  if (n === 0xfffd || (n >= 0xd800 && n < 0xe000)) return '\ufffd';
  if (n < 0x80) return '\\x' + n.toString(16).padStart(2, '0');
  if (n < 0x10000) return '\\u' + n.toString(16).padStart(4, '0');
  return '\\U' + n.toString(16).padStart(8, '0');
}

/**
 * The known name nearest to a word, '' if none is near. Case does not count; a
 * swap of neighbours is one edit.
 * @param {string} word @param {string[]} known
 */
export function nearest(word, known) {
  let [best, least] = ['', Infinity];
  for (const name of known) {
    const d = edits(word.toLowerCase(), name.toLowerCase());
    const most = Math.min(Math.max(Math.floor(name.length / 3), 1), 4);
    if (d <= most && d < least) [best, least] = [name, d];
  }
  return best;
}

/** @param {string} a @param {string} b */
function edits(a, b) {
  const TOO_LONG = 256;
  if (a.length > TOO_LONG || b.length > TOO_LONG) return TOO_LONG;
  let [before, last, row] = [[0], Array.from({ length: b.length + 1 }, (_, j) => j), /** @type {number[]} */ ([])];
  for (let i = 1; i <= a.length; i++) {
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], before[j - 2] + 1);
    }
    [before, last] = [last, row];
  }
  return last[b.length];
}
