// @ts-check
// What files of durations have in common: faults, arrays as sentences speak of
// them, and their checks.

import { quote } from './wording.js';
import { sentenceFloat } from './spell.js';

/** What is wrong with a file of durations: one sentence that names it. */
export class FileFault extends Error {}

/** @param {string} file @param {string} text @returns {never} */
export function fault(file, text) {
  throw new FileFault(`${file}: ${text}`);
}

/** An array as sentences speak of it; axes are what it is over. @typedef {{name: string, data: number[], axes: Arrays}} Named */
/** @typedef {Named[]} Arrays */

/** @param {number} n */
export const values = (n) => (n === 1 ? '1 value' : `${n} values`);

/** Names one after the other: a, b and c. @param {string[]} names */
export function list(names) {
  return names.length === 1 ? names[0] : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`;
}

/** The place of a value in all dimensions. @param {Named} a @param {number} i */
function place(a, i) {
  if (a.axes.length < 2) return String(i);
  const parts = [];
  for (const axis of [...a.axes].reverse()) {
    parts.unshift(i % axis.data.length);
    i = Math.floor(i / axis.data.length);
  }
  return `[${parts.join(', ')}]`;
}

/** @param {string} file @param {Named} a @param {boolean} [grid] of a grid, whose axes begin at 0 or later */
export function checkAxis(file, a, grid = false) {
  if (a.data.length < 2) fault(file, `array ${a.name} has ${values(a.data.length)}; two or more are accepted`);
  checkFinite(file, a);
  a.data.forEach((x, i) => {
    if (i > 0 && x <= a.data[i - 1]) {
      fault(file, `array ${a.name} has ${sentenceFloat(x)} at index ${i} after ${sentenceFloat(a.data[i - 1])}; strictly rising values are accepted`);
    }
  });
  if (grid && a.data[0] < 0) fault(file, `array ${a.name} is ${sentenceFloat(a.data[0])} at index 0; numbers of at least 0 are accepted`);
}

/** @param {string} file @param {Named} a */
function checkFinite(file, a) {
  const i = a.data.findIndex((x) => !Number.isFinite(x));
  if (i >= 0) fault(file, `array ${a.name} is ${sentenceFloat(a.data[i])} at index ${place(a, i)}; finite numbers are accepted`);
}

/** @param {string} file @param {Named} a @param {boolean} [grid] of a grid, which has no durations below 0 */
export function checkValues(file, a, grid = false) {
  const want = a.axes.reduce((n, axis) => n * axis.data.length, 1);
  if (a.data.length !== want) {
    fault(file, `array ${a.name} has ${values(a.data.length)}, but ${a.axes.map((x) => `${x.name} has ${values(x.data.length)}`).join(' and ')}; one for each is accepted`);
  }
  checkFinite(file, a);
  const i = grid ? a.data.findIndex((x) => x < 0) : -1;
  if (i >= 0) fault(file, `array ${a.name} is ${sentenceFloat(a.data[i])} at index ${place(a, i)}; numbers of at least 0 are accepted`);
}

/** The bytes at the start of a file, quoted. @param {Uint8Array} bytes @param {number} n */
export function start(bytes, n) {
  let out = '';
  for (const b of bytes.subarray(0, n)) out += b < 0x80 ? quote(String.fromCharCode(b)).slice(1, -1) : `\\x${b.toString(16)}`;
  return `"${out}"`;
}

/** Whether a file is a ZIP archive by its start. @param {Uint8Array} bytes */
export const isArchive = (bytes) => bytes.length >= 2 && bytes[0] === 0x50 && bytes[1] === 0x4b;
