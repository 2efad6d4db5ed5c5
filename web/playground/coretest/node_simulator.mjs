// A Simulator in Node: workers are threads.
import { Worker } from 'node:worker_threads';
import { readFileSync } from 'node:fs';
import { Simulator } from '../src/core/client.js';

/** @param {string} core path of core.wasm @param {number} [workers] */
export function nodeSimulator(core, workers) {
  return new Simulator({ core: readFileSync(core), workers, spawn });
}

function spawn() {
  const worker = new Worker(new URL('./node_worker.mjs', import.meta.url));
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    listen: (take) => worker.on('message', take),
    broken: (fail) => worker.on('error', (e) => fail(e.message)),
    end: () => worker.terminate(),
  };
}
