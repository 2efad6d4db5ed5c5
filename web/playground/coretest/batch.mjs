// Runs a list of scenarios and tells what comes out of each, the same way in
// Node and in browsers.
import { ComplaintError } from '../src/core/client.js';
import { requestsCSV, requestsJSONL } from '../src/core/report.js';
import { commandLine } from '../src/core/scenario.js';

/**
 * A job: {name, scenario, traces, files, paths, record}. load gives the bytes of a file or its address.
 * @returns {Promise<{name: string, command: string[], shell: string, report?: string, requests?: string, csv?: string, complaints?: object[], error?: string}>}
 */
export async function runJob(simulator, job, load) {
  const { words, text } = commandLine(job.scenario, { ...job.paths, trace: [] });
  const out = { name: job.name, command: words, shell: text };
  try {
    const files = Object.fromEntries(Object.entries(job.files ?? {}).map(([name, path]) => [name, load(path)]));
    const traces = (job.traces ?? []).map(load);
    const r = await simulator.simulate(job.scenario, traces.length > 1 ? traces : (traces[0] ?? null), { files, record: job.record === true });
    out.report = new TextDecoder().decode(r.reportJSON);
    out.requests = await requestsJSONL(r).text();
    out.csv = await requestsCSV(r).text();
    out.warnings = r.warnings;
    if (r.recording !== null) out.recording = plain(r.recording);
  } catch (e) {
    if (e instanceof ComplaintError) out.complaints = e.complaints;
    else out.error = `${e.message}\n${e.stack}`;
  }
  return out;
}

/** Typed arrays as arrays; numbers that JSON lacks become null. */
function plain(x) {
  if (ArrayBuffer.isView(x)) return Array.from(x);
  if (Array.isArray(x)) return x.map(plain);
  if (typeof x === 'object' && x !== null) return Object.fromEntries(Object.entries(x).map(([k, v]) => [k, plain(v)]));
  return x;
}
