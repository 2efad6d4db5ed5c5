// @ts-check
// Numbers and texts as reports and sentences have them. Each spelling reads back
// as the same bits.

/** The shortest digits of a finite number other than 0 and the power of ten of the first. @param {number} x */
function digits(x) {
  const [, first, rest = '', power] = /** @type {RegExpExecArray} */ (/^-?(\d)(?:\.(\d+))?e([+-]\d+)$/.exec(x.toExponential()));
  return { digits: first + rest, power: Number(power) };
}

/** Plain digits with a point. @param {string} d @param {number} power */
function plain(d, power) {
  if (power < 0) return `0.${'0'.repeat(-power - 1)}${d}`;
  if (d.length <= power + 1) return `${d}${'0'.repeat(power + 1 - d.length)}.0`;
  return `${d.slice(0, power + 1)}.${d.slice(power + 1)}`;
}

/** @param {number} x @param {number} least power of ten written plainly @param {(power: number) => string} exponent */
function float(x, least, exponent) {
  if (!Number.isFinite(x)) return 'null';
  const sign = x < 0 || Object.is(x, -0) ? '-' : '';
  if (x === 0) return `${sign}0.0`;
  const { digits: d, power } = digits(x);
  if (power >= least && power < 16) return sign + plain(d, power);
  return `${sign}${d[0]}${d.length > 1 ? `.${d.slice(1)}` : ''}e${exponent(power)}`;
}

/** As Python's repr and json.dumps have it; null if JSON lacks the number. @param {number} x */
export function pythonFloat(x) {
  return float(x, -4, (p) => (p < 0 ? '-' : '+') + String(Math.abs(p)).padStart(2, '0'));
}

/** As the lines of requests have it: plain from 1e-5, exponents without padding or plus sign. @param {number} x */
export function lineFloat(x) {
  return float(x, -5, (p) => String(p));
}

/** As sentences have it: shortest, with an exponent from 1e6 and below 1e-4. @param {number} x */
export function sentenceFloat(x) {
  if (Number.isNaN(x)) return 'NaN';
  if (!Number.isFinite(x)) return x < 0 ? '-Inf' : '+Inf';
  if (x === 0) return Object.is(x, -0) ? '-0' : '0';
  const { digits: d, power } = digits(x);
  const sign = x < 0 ? '-' : '';
  if (power < -4 || power >= 6) {
    return `${sign}${d[0]}${d.length > 1 ? `.${d.slice(1)}` : ''}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
  }
  return sign + plain(d, power).replace(/\.0$/, '');
}

/** A JSON text as json.dumps without ASCII escapes has it. @param {string} s */
export function jsonText(s) {
  return JSON.stringify(s).replace(/\\ud[89ab][0-9a-f]{2}|\\ud[c-f][0-9a-f]{2}/g, '\ufffd');
}
