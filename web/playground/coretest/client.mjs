// node client.mjs CORE TRACE checks the pool of workers, and prints how much it
// has checked.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { ComplaintError, Simulator } from '../src/core/client.js';
import { Guest } from '../src/core/guest.js';
import { loadTable } from '../src/core/timing.js';
import { Trace } from '../src/core/trace.js';
import { nodeSimulator, spawn } from './node_simulator.mjs';

const [core, trace] = process.argv.slice(2);
const bytes = new Uint8Array(readFileSync(trace));
const scenario = { workload: { kind: 'file', name: 'conversation-2k.jsonl' }, numWorkers: 2 };
let checks = 0;
const check = (ok, what) => {
  assert.ok(ok, what);
  checks++;
};
const fails = async (promise) => promise.then(() => assert.fail('it succeeds'), (e) => e);
const timeless = (r) => new TextDecoder().decode(r.reportJSON).replace(/"(wall_time_ms|processed_\w*tokens_per_s)": [^,\n]*/g, '');

const simulator = nodeSimulator(core, 2);
try {
  // Runs at the same time do not know of each other.
  const alone = await simulator.simulate(scenario, bytes);
  const other = { ...scenario, engine: { num_gpu_blocks: 500 } };
  const many = await Promise.all([scenario, other, scenario, other].map((s) => simulator.simulate(s, bytes)));
  check(simulator.slots.length === 2, 'as many workers as asked for');
  check(timeless(many[0]) === timeless(alone) && timeless(many[2]) === timeless(alone), 'equal scenarios, equal reports');
  check(timeless(many[1]) === timeless(many[3]) && timeless(many[1]) !== timeless(alone), 'another scenario, another report');
  check(alone.report.num_requests === 2000 && alone.records.turn.length === 2000 && alone.recording === null, 'all requests');
  check(bytes.length > 0, 'the bytes are still ours');

  // Progress rises and names its stages.
  const progress = [];
  await simulator.simulate(scenario, new Blob([bytes]), { onProgress: (p) => progress.push(p), record: true });
  const stages = [...new Set(progress.map((p) => p.stage))];
  check(stages.join() === 'reading,simulating,reporting' || stages.join() === 'simulating,reporting', `stages ${stages}`);
  const simulated = progress.filter((p) => p.stage === 'simulating');
  check(simulated.length > 2 && simulated.every((p, i) => p.total === 2000 && (i === 0 || p.done >= simulated[i - 1].done)), 'progress rises');

  // A run is cancelled in the middle, and the worker goes on with the next.
  const control = new AbortController();
  let seen = 0;
  const slow = { ...scenario, workload: { kind: 'synthetic', inputTokens: 100, outputTokens: 500, requestCount: 1_000_000, requestRate: 50 }, plain: true };
  const cancelled = await fails(simulator.simulate(slow, null, { signal: control.signal, onProgress: (p) => p.stage === 'simulating' && ++seen === 3 && control.abort() }));
  check(cancelled.name === 'AbortError' && seen < 200, `${cancelled}, after ${seen}`); // of many thousands
  check(timeless(await simulator.simulate(scenario, bytes)) === timeless(alone), 'the run after a cancelled one');

  // One that waits is cancelled before it begins; one that is over stays so.
  const running = [0, 1].map(() => simulator.simulate(scenario, bytes));
  const waits = new AbortController();
  const waiting = fails(simulator.simulate(scenario, bytes, { signal: waits.signal }));
  await simulator.ready();
  waits.abort();
  check((await waiting).name === 'AbortError', 'waiting');
  check((await Promise.all(running)).length === 2, 'the others go on');
  check((await fails(simulator.simulate(scenario, bytes, { signal: AbortSignal.abort() }))).name === 'AbortError', 'before it is asked for');

  // What can be put right, all of it at once, with its places.
  const complaints = (await fails(simulator.simulate({ ...scenario, engine: { block_size: 'x', nothing: 1 }, sla: { ttftMs: -1 } }, bytes))).complaints;
  check(complaints.map((c) => c.path).join() === 'engine.block_size,engine.nothing,sla.ttftMs', JSON.stringify(complaints));
  check((await simulator.check({ ...scenario, engine: { block_size: 1 } }))[0].path === 'engine.block_size', 'the core is asked');
  check((await simulator.check({ ...scenario, workload: { kind: 'synthetic', inputTokens: 0, outputTokens: 1, requestCount: 1, concurrency: 1 } }))[0].path === 'workload.inputTokens', 'and of workloads');
  check((await simulator.check(scenario)).length === 0, 'nothing is wrong');
  check((await fails(simulator.simulate(scenario, null))) instanceof ComplaintError, 'no trace');
  const missing = await fails(simulator.simulate({ ...scenario, timing: { kind: 'grid', name: 'x.json' } }, bytes));
  check(missing.complaints?.[0].path === 'timing', 'no grid');

  // A worker that stops is replaced.
  const lost = fails(simulator.simulate(slow, null, { onProgress: () => simulator.slots.find((s) => s.job !== null)?.worker.kill?.() }));
  check(/a worker has stopped/.test((await lost).message), String(await lost));
  check(timeless(await simulator.simulate(scenario, bytes)) === timeless(alone), 'the run after that');

  // One that does not hear that its run is cancelled is ended, and others get a worker.
  let ended = 0;
  const deaf = new Simulator({ core: readFileSync(core), workers: 1, spawn: () => ended > 0 ? spawn() : { post() {}, listen() {}, broken() {}, end: () => ended++ } });
  const given = new AbortController();
  const up = fails(deaf.simulate(slow, null, { signal: given.signal }));
  const next = deaf.simulate(scenario, bytes);
  await deaf.ready();
  given.abort();
  check((await up).name === 'AbortError' && ended === 1, 'a deaf worker');
  check(timeless(await next) === timeless(alone), 'the run that waited for it');
  deaf.close();

  // A file that has changed since it was given, plain, compressed and of durations.
  const begun = new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1]);
  for (const parts of [[], [bytes.subarray(0, 1000)], [begun]]) {
    const changed = new Blob();
    changed.stream = () => new ReadableStream({ pull: (c) => (parts.length > 0 ? c.enqueue(parts[0].slice()) : 0, c.error(new TypeError('network error'))) });
    const why = await fails((async () => { for await (const _ of new Trace(changed, 'mine.jsonl.gz').chunks()); })());
    check(why.complaints?.[0].path === 'trace' && why.message.includes('chosen or dropped again'), String(why));
  }
  const durations = new Blob();
  durations.arrayBuffer = () => Promise.reject(new TypeError('network error'));
  const why = await fails(loadTable({ ...scenario, timing: { kind: 'npz', name: 'x.npz' } }, { 'x.npz': durations }));
  check(why.complaints?.[0].path === 'timing' && why.message.includes('x.npz: cannot be read'), String(why));

  // What core.wasm says when it has no more memory.
  const full = { dead: null, wasi: { lastWords: 'runtime: out of memory: cannot allocate' } };
  assert.throws(() => Guest.prototype.ask.call(full, () => { throw new Error('unreachable'); }), /more memory than a page can have/);

  // A core.wasm that is being fetched already is not fetched again, unless that failed.
  const served = () => new Response(readFileSync(core), { headers: { 'content-type': 'application/wasm' } });
  for (const early of [Promise.resolve(served()), Promise.resolve(null)]) {
    const asks = globalThis.fetch;
    let asked = 0;
    globalThis.fetch = async () => (asked++, served());
    const beside = new Simulator({ core: 'https://nowhere/core.wasm', early, spawn });
    await beside.ready().finally(() => (globalThis.fetch = asks));
    check(asked === ((await early) === null ? 1 : 0), `${asked} fetches`);
  }

  // No core.wasm, and no end.
  const nowhere = new Simulator({ core: new Uint8Array([1, 2, 3]), spawn });
  check(/WebAssembly/.test((await fails(nowhere.simulate(scenario, bytes))).message), 'bytes that are none');
  const left = fails(simulator.simulate(slow, null));
  await simulator.ready();
  await new Promise((resolve) => setTimeout(resolve, 50));
  simulator.close();
  check((await left).name === 'AbortError', 'closed');
} finally {
  simulator.close();
}
console.log(JSON.stringify({ checks }));
