// The files of a run: samples and grids that lie beside the page, and what was
// dropped or chosen. Nothing leaves the page.

import { GONE } from "./core/trace.js";
import { complain } from "./core/wording.js";
import { get } from "./fields.js";
import { scenarioOf, sampleFiles } from "./scenarios.js";
import { valuesOf } from "./state.js";

/** @typedef {import("./state.js").State} State */

/** What stands in the way of a run until a file is given. */
export class Wanting extends Error {
  /** @param {string} field @param {string} sentence */
  constructor(field, sentence) {
    super(sentence);
    this.field = field;
  }
}

/** @type {Map<string, Promise<Blob>>} */
const fetched = new Map();

/** A file beside the page, fetched once. @param {string} name @returns {Promise<Blob>} */
function beside(name) {
  let file = fetched.get(name);
  if (!file) {
    file = fetch(`samples/${name}`).then((r) => {
      if (!r.ok) throw new Error(`samples/${name} cannot be fetched: the server says ${r.status} ${r.statusText}`.trim());
      return r.blob();
    });
    file.catch(() => fetched.delete(name)); // another try may have more luck
    fetched.set(name, file);
  }
  return file;
}

export const files = {
  /** @type {File | null} */
  trace: null,
  /** @type {File | null} */
  durations: null,
};

/** When files were changed last, as they were given. @type {WeakMap<File, number>} */
const times = new WeakMap();

/** Keeps a file for runs. @param {"trace" | "durations"} what @param {File} file */
export function keep(what, file) {
  files[what] = file;
  times.set(file, file.lastModified);
}

/** WebKit reads of a file that has grown as much as it had, as if that were all. @param {"trace" | "timing"} path @param {File} file */
function unchanged(path, file) {
  return file.lastModified === times.get(file) ? file : complain(path, `${file.name} ${GONE}`);
}

/** Whether a dropped file has durations of passes: by its name, and of JSON by its beginning. @param {File} file */
export async function isDurations(file) {
  if (/\.npz$/i.test(file.name)) return true;
  if (!/\.json$/i.test(file.name)) return false;
  const head = await file.slice(0, 1 << 16).text();
  return /"(isl|num_gpu_blocks|aiconfigurator_core)"\s*:/.test(head) && /"(prefill|decode)"\s*:\s*\{/.test(head);
}

/**
 * What a simulation of one side takes.
 * @param {State} s @param {"a" | "b"} side
 * @returns {Promise<{scenario: import("./core/types.d.ts").Scenario, trace: Blob | null, options: {files?: Record<string, Blob>}}>}
 */
export async function inputs(s, side) {
  const v = valuesOf(s, side);
  const scenario = scenarioOf(s, side);
  /** @type {Record<string, Blob>} */
  const timing = {};
  if (get(v, "timing") === "file") {
    if (!files.durations || files.durations.name !== s.durations) throw new Wanting("timing", s.durations ? `The durations of this link are in ${s.durations}: choose that file or drop it here.` : "Choose a file of pass durations, or drop one here.");
    timing[s.durations] = unchanged("timing", files.durations);
  } else if (get(v, "timing") === "grid") {
    const name = `${get(v, "grid")}.json`;
    timing[name] = await beside(name);
  }
  return { scenario, trace: await trace(s), options: { files: timing } };
}

/** @param {State} s @returns {Promise<Blob | null>} */
async function trace(s) {
  const source = get(s.shared, "source");
  if (source === "synthetic") return null;
  if (source === "sample") return beside(sampleFiles[String(get(s.shared, "sample"))]);
  if (!files.trace || files.trace.name !== s.trace) throw new Wanting("source", s.trace ? `The requests of this link are in ${s.trace}: choose that file or drop it here.` : "Choose a trace, or drop one here.");
  return unchanged("trace", files.trace);
}

/** Begins to fetch what a state needs. @param {State} s */
export function foresee(s) {
  inputs(s, "a").catch(() => {}); // it is told when it is needed
}
