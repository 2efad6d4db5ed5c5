// A Simulator in Node: workers are threads.
import { Worker } from 'node:worker_threads';
import { readFileSync } from 'node:fs';
import { Simulator } from '../src/core/client.js';

/** @param {string} core path of core.wasm @param {number} [workers] */
export function nodeSimulator(core, workers) {
  return new Simulator({ core: readFileSync(core), workers, spawn });
}

/** A worker; kill ends it as a fault would. */
export function spawn() {
  const worker = new Worker(new URL('./node_worker.mjs', import.meta.url));
  let ours = false; // its end
  return {
    post: (message, transfer = []) => worker.postMessage(message, transfer),
    listen: (take) => worker.on('message', take),
    broken: (fail) => {
      worker.on('error', (e) => fail(e.message));
      worker.on('exit', () => ours || fail('it was ended'));
    },
    end: () => {
      ours = true;
      return worker.terminate();
    },
    kill: () => worker.terminate(),
  };
}
