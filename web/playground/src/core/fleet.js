// @ts-check
// Workers and ranks of a run by number and name, in the order of the command
// line's pages: a pool that computes prompts comes before that which decodes.

/** Pools by number, as recordings have them. */
export const SERVING = 0;
export const PREFILL = 1;

/** A pool of like workers. @typedef {{id: number, word: string, workers: number, ranks: number, blocks: number, first: number}} Pool ranks are those of a worker */

export class Fleet {
  /** @param {Omit<Pool, 'first'>[]} pools in the order in which they are shown */
  constructor(pools) {
    /** @type {Pool[]} */
    this.pools = [];
    this.ranks = 0;
    for (const p of pools) {
      this.pools.push({ ...p, first: this.ranks });
      this.ranks += p.workers * p.ranks;
    }
  }

  /** @param {number} id of a rank */
  pool(id) {
    let i = this.pools.length - 1;
    while (this.pools[i].first > id) i--;
    return this.pools[i];
  }

  /** The number of a rank, -1 for none. @param {number} pool @param {number} worker @param {number} rank */
  rank(pool, worker, rank) {
    const p = this.pools.find((q) => q.id === pool);
    return p === undefined || worker < 0 ? -1 : p.first + worker * p.ranks + rank;
  }

  /** What a rank is called; one that is alone in its worker has the worker's name. @param {number} id */
  name(id) {
    const p = this.pool(id);
    const at = id - p.first;
    const worker = `${p.word}worker ${Math.floor(at / p.ranks)}`;
    return p.ranks === 1 ? worker : `${worker}, rank ${at % p.ranks}`;
  }
}

/** The fleet of a run. @param {import('./scenario.js').Plan} plan */
export function fleetOf(plan) {
  const count = (/** @type {string} */ flag) => Number(plan.values.get(flag) ?? 1);
  const pool = (/** @type {import('./engine.js').ReadEngine} */ e, /** @type {number} */ id, /** @type {string} */ word, /** @type {number} */ workers) => ({
    id, word, workers, ranks: Number(e.pairs['engine.dp_size'] ?? 1), blocks: Number(e.pairs['engine.num_gpu_blocks'] ?? 16384),
  });
  if (plan.prefill === null) return new Fleet([pool(plan.engine, SERVING, '', count('num-workers'))]);
  return new Fleet([pool(plan.prefill, PREFILL, 'prefill ', count('num-prefill-workers')), pool(plan.engine, SERVING, 'decode ', count('num-decode-workers'))]);
}
