// @ts-check
// Counts of values by class, for percentiles of any number of values in little
// memory: classes are 0.2 % wide at most and told by their middles.

const MANTISSA_BITS = 9;
const SHIFT = 20 - MANTISSA_BITS; // of the high half of a float64

const float = new Float64Array(1);
const halves = new Uint32Array(float.buffer); // little-endian: the high half is the second

/** The class of a value of 0 and more. @param {number} x */
function classOf(x) {
  float[0] = x > 0 ? x : 0;
  return halves[1] >>> SHIFT;
}

/** The value that stands for a class. @param {number} n */
function middle(n) {
  if (n === 0) return 0;
  halves[0] = 0;
  halves[1] = (n << SHIFT) | (1 << (SHIFT - 1));
  return float[0];
}

export class Sketch {
  constructor() {
    this.n = 0;
    /** @type {Map<number, number>} */
    this.counts = new Map();
  }

  /** @param {number} x @param {number} n */
  add(x, n) {
    const k = classOf(x);
    this.counts.set(k, (this.counts.get(k) ?? 0) + n);
    this.n += n;
  }

  /** @param {Sketch} o */
  merge(o) {
    for (const [k, n] of o.counts) this.counts.set(k, (this.counts.get(k) ?? 0) + n);
    this.n += o.n;
  }

  /** Values at rising fractions by nearest rank; NaN if there are none. @param {ArrayLike<number>} fractions */
  quantiles(fractions) {
    const out = new Float64Array(fractions.length).fill(NaN);
    if (this.n === 0) return out;
    const classes = [...this.counts.keys()].sort((a, b) => a - b);
    let [seen, at] = [0, 0];
    for (let i = 0; i < out.length; i++) {
      const rank = Math.max(Math.ceil(fractions[i] * this.n), 1);
      for (let c = this.counts.get(classes[at]) ?? 0; at < classes.length && seen + c < rank; c = this.counts.get(classes[at]) ?? 0) {
        seen += c;
        at++;
      }
      out[i] = middle(classes[Math.min(at, classes.length - 1)]);
    }
    return out;
  }
}
