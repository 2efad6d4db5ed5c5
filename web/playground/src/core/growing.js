// @ts-check
// Columns that grow.

/** Typed arrays of one length that grow together. */
export class Growing {
  /** @param {string[]} floats @param {string[]} ints names of columns @param {number} [most] rows; others are left out */
  constructor(floats, ints, most = Infinity) {
    this.most = most;
    this.n = 0;
    this.names = [...floats, ...ints];
    /** @type {(Float64Array | Int32Array)[]} */
    this.list = [...floats.map(() => new Float64Array(64)), ...ints.map(() => new Int32Array(64))];
  }

  get full() {
    return this.n >= this.most;
  }

  /** @param {...number} values in the order of the names */
  push(...values) {
    if (this.full) return;
    if (this.n === this.list[0].length) this.grow();
    for (let i = 0; i < this.list.length; i++) this.list[i][this.n] = values[i];
    this.n++;
  }

  grow() {
    this.list = this.list.map((old) => {
      const larger = old instanceof Float64Array ? new Float64Array(2 * old.length) : new Int32Array(2 * old.length);
      larger.set(old);
      return larger;
    });
  }

  /** The columns by name, cut to length. @returns {Record<string, Float64Array | Int32Array>} */
  cut() {
    return Object.fromEntries(this.names.map((name, i) => [name, this.list[i].slice(0, this.n)]));
  }
}
