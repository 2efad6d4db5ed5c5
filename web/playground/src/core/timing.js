// @ts-check
// Durations of passes out of files that a scenario names: grids in JSON, profiles
// in NumPy archives. See docs/timing.md.

import { parseGrid } from './grid.js';
import { floatBin } from './msgpack.js';
import { parseProfile } from './npz.js';
import { FileFault } from './table.js';
import { GONE } from './trace.js';
import { complain, found } from './wording.js';

/** @typedef {import('./types.js').Scenario} Scenario */
/** @typedef {import('./types.js').Source} Source */
/** @typedef {import('./engine.js').ReadEngine} ReadEngine */
/** @typedef {import('./wording.js').ComplaintList} ComplaintList */
/** @typedef {import('./grid.js').Grid} Grid */

/** Most that a file of durations may have, in bytes. */
const MOST_BYTES = 64 << 20;
const MOST_BLOCKS = 2 ** 31 - 1;

/** Kinds of timing in the order of their values, and the flags that name their files. */
const KINDS = { npz: { value: 2, flag: '--planner-profile-data' }, grid: { value: 3, flag: '--perf-grid' } };

/** The durations that a scenario's engines take. */
export class Table {
  /** @param {'grid' | 'npz'} kind @param {string} name @param {Record<string, number[]>} columns by key of a frame @param {Grid | null} grid */
  constructor(kind, name, columns, grid) {
    this.kind = kind;
    this.name = name;
    this.columns = columns;
    this.grid = grid;
  }

  get flag() {
    return KINDS[this.kind].flag;
  }

  /**
   * Gives the durations to an engine. What a grid says of the engine fills in
   * what the arguments do not: the KV capacity, and the GPUs of a rank.
   * @param {ReadEngine} e @param {ComplaintList} complaints
   */
  use(e, complaints) {
    if (Number(e.pairs['engine.timing.kind'] ?? 0) !== 0) {
      complaints.add(`${e.at}.timing_model`, `engine.timing_model says how long passes take, and so does ${this.flag}; one is accepted`);
      return;
    }
    e.pairs['engine.timing.kind'] = KINDS[this.kind].value;
    for (const [key, column] of Object.entries(this.columns)) e.pairs[`engine.timing.${key}`] = floatBin(column);
    if (this.grid !== null) this.fill(e, this.grid, complaints);
  }

  /** @param {ReadEngine} e @param {Grid} g @param {ComplaintList} complaints */
  fill(e, g, complaints) {
    const explicit = e.args.num_gpu_blocks_is_explicit ?? e.args.num_gpu_blocks !== undefined;
    const size = Number(e.pairs['engine.block_size']);
    if (g.numGPUBlocks > 0 && explicit === false && size > 0) {
      const tokens = BigInt(g.numGPUBlocks) * BigInt(g.blockSize);
      const blocks = Math.min(Number(tokens / BigInt(Math.trunc(size))), MOST_BLOCKS);
      if (blocks === 0) {
        complaints.add(
          `${e.at}.block_size`,
          `${this.flag}: ${this.name}: num_gpu_blocks is ${g.numGPUBlocks} blocks of ${g.blockSize} tokens, less than one block of ${size}; a smaller block_size or a num_gpu_blocks of the engine's own is accepted`,
        );
      }
      e.pairs['engine.num_gpu_blocks'] = blocks;
    }
    const tp = e.args.tensor_parallel_size;
    if (g.tp === 0) return;
    if (tp === undefined) e.pairs['engine.tensor_parallel_size'] = g.tp;
    else if (Number(e.pairs['engine.tensor_parallel_size']) !== g.tp) {
      complaints.add(`${e.at}.tensor_parallel_size`, `tensor_parallel_size is ${found(tp)}, but ${this.name} is for ${g.tp}; ${g.tp} is accepted`);
    }
  }

  /** What does not fit, though it can be run. @param {ReadEngine} e */
  warning(e) {
    const backend = this.grid?.backend ?? '';
    return backend === '' || backend === e.backend ? '' : `the durations in ${this.name} are those of backend ${backend}, the simulated engine is ${e.backend}`;
  }
}

/**
 * Reads the file that a scenario names for its durations.
 * @param {Scenario} s
 * @param {Record<string, Source>} files
 * @returns {Promise<Table | null>} null: it names none
 */
export async function loadTable(s, files) {
  const t = s.timing;
  if (t === undefined || t === null || t.kind === 'polynomial' || t.kind === 'fixed') return null;
  if (t.kind !== 'grid' && t.kind !== 'npz') return complain('timing.kind', `timing.kind is ${found(/** @type {any} */ (t).kind)}; "polynomial", "fixed", "grid" or "npz" is accepted`);
  const flag = KINDS[t.kind].flag;
  if (typeof t.name !== 'string' || t.name === '') return complain('timing', `${flag} is empty; a path is accepted`);
  const source = files[t.name];
  if (source === undefined) return complain('timing', `${flag}: ${t.name}: no such file; the file itself is accepted`);
  const bytes = await bytesOf(source, t.name, flag);
  try {
    return t.kind === 'grid' ? gridTable(t.name, bytes) : new Table('npz', t.name, await parseProfile(t.name, bytes), null);
  } catch (e) {
    if (e instanceof FileFault) return complain('timing', `${flag}: ${e.message}`);
    throw e;
  }
}

/** @param {string} name @param {Uint8Array} bytes */
function gridTable(name, bytes) {
  const grid = parseGrid(name, bytes);
  return new Table('grid', name, grid.columns, grid);
}

/** @param {Source} source @param {string} name @param {string} flag @returns {Promise<Uint8Array>} */
async function bytesOf(source, name, flag) {
  /** @type {ArrayBuffer} */
  let buffer;
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (typeof source === 'string') {
    const response = await fetch(source).catch(() => null);
    if (response === null || !response.ok) return complain('timing', `${flag}: ${name}: cannot be fetched${response === null ? '' : `: the server says ${response.status} ${response.statusText}`.trimEnd()}`);
    buffer = await response.arrayBuffer();
  } else {
    if (source.size > MOST_BYTES) return complain('timing', `${flag}: ${name}: has ${source.size} bytes; a file of at most ${MOST_BYTES} is accepted`);
    buffer = await source.arrayBuffer().catch(() => complain('timing', `${flag}: ${name}: ${GONE}`));
  }
  return new Uint8Array(buffer);
}
