// Runs what a view needs, one view at a time: a newer run cancels the one
// before it.

import { ComplaintError, Simulator } from "./core/client.js";
import { byId, get } from "./fields.js";
import { inputs, Wanting } from "./files.js";
import { fieldAt, sampleFiles } from "./scenarios.js";
import { put, sweepValues, valuesOf } from "./state.js";

/**
 * @typedef {import("./state.js").State} State
 * @typedef {import("./core/types.d.ts").Result} Result
 * @typedef {import("./core/types.d.ts").Scenario} Scenario
 * @typedef {{result: Result, scenario: Scenario}} Ran
 * @typedef {{view: "run", a: Ran} | {view: "compare", a: Ran, b: Ran} | {view: "sweep", points: {x: number, ran: Ran | null, fault: string}[]}} Outcome
 *
 * @typedef {object} Fault
 * @property {string} sentence
 * @property {"a" | "b"} side
 * @property {Map<string, string>} fields sentences by field
 * @property {string[]} other sentences without a field
 * @property {boolean} wanting a file is missing, nothing is wrong
 *
 * @typedef {object} Listener
 * @property {() => void} began
 * @property {(share: number | null, text: string) => void} progress
 * @property {(o: Outcome, whole: boolean, tookMs: number) => void} came
 * @property {(f: Fault) => void} failed
 * @property {() => void} cancelled
 */

export class Runner {
  /** @param {Listener} to */
  constructor(to) {
    this.to = to;
    const { earlyCore } = /** @type {{earlyCore?: Promise<Response | null>}} */ (globalThis); // of early.js
    this.simulator = new Simulator({ core: new URL("core.wasm", document.baseURI), early: earlyCore });
    /** @type {AbortController | null} */
    this.under = null;
  }

  /** Fetches and compiles core.wasm ahead. */
  warm() {
    this.simulator.ready().catch(() => {}); // it is told when it is needed
  }

  /** @param {boolean} [quiet] a newer run takes over */
  cancel(quiet = false) {
    if (!this.under) return;
    this.under.abort();
    this.under = null;
    if (!quiet) this.to.cancelled();
  }

  /** @param {State} state */
  async start(state) {
    this.cancel(true);
    const s = structuredClone(state);
    const control = new AbortController();
    this.under = control;
    const began = performance.now();
    const mine = () => this.under === control;
    const come = (/** @type {Outcome} */ o, whole = true) => mine() && this.to.came(o, whole, performance.now() - began);
    this.to.began();
    try {
      if (s.view === "run") await this.run(s, control, come, mine);
      else if (s.view === "compare") await this.compare(s, control, come, mine);
      else await this.sweep(s, control, come, mine);
    } catch (e) {
      if (!mine() || control.signal.aborted) return;
      control.abort(); // its other runs
      this.to.failed(faultOf(e, s));
    }
    if (mine()) this.under = null;
  }

  /** @param {State} s @param {AbortController} control @param {(o: Outcome, whole?: boolean) => void} come @param {() => boolean} mine */
  async run(s, control, come, mine) {
    const a = await this.one(s, "a", control, (p) => mine() && this.to.progress(...told(p)), false);
    come({ view: "run", a }, false);
    come({ view: "run", a: await this.one(s, "a", control, (p) => mine() && this.to.progress(...told(p, "figures, "))) });
  }

  /** @param {State} s @param {AbortController} control @param {(o: Outcome, whole?: boolean) => void} come @param {() => boolean} mine */
  async compare(s, control, come, mine) {
    for (const record of [false, true]) {
      const share = { a: 0, b: 0 };
      const [a, b] = await Promise.all((/** @type {const} */ (["a", "b"])).map((side) => this.one(s, side, control, (p) => {
        share[side] = told(p)[0] ?? 0;
        if (mine()) this.to.progress((share.a + share.b) / 2, record ? "figures of both" : "both");
      }, record)));
      come({ view: "compare", a, b }, record);
    }
  }

  /** @param {State} s @param {AbortController} control @param {(o: Outcome, whole?: boolean) => void} come @param {() => boolean} mine */
  async sweep(s, control, come, mine) {
    const values = sweepValues(s.sweep);
    /** @type {{x: number, ran: Ran | null, fault: string}[]} */
    const points = values.map((x) => ({ x, ran: null, fault: "" }));
    let done = 0;
    await Promise.all(points.map(async (p) => {
      const at = structuredClone(s);
      put(at, "a", s.sweep.field, p.x);
      try {
        p.ran = await this.one(at, "a", control, () => {}, false);
      } catch (e) {
        if (!(e instanceof ComplaintError) || !e.complaints.every((c) => fieldAt(c.path, valuesOf(at, "a")) === s.sweep.field || c.path === "")) throw e;
        p.fault = e.message; // of this point alone
      }
      if (mine()) this.to.progress(++done / values.length, `${done} of ${values.length} points`);
      if (done < values.length) come({ view: "sweep", points }, false);
    }));
    come({ view: "sweep", points });
  }

  /** @param {State} s @param {"a" | "b"} side @param {AbortController} control @param {(p: import("./core/types.d.ts").Progress) => void} progress @param {boolean} [record] @returns {Promise<Ran>} */
  async one(s, side, control, progress, record = true) {
    try {
      const { scenario, trace, options } = await inputs(s, side);
      control.signal.throwIfAborted();
      const result = await this.simulator.simulate(scenario, trace, { ...options, record, signal: control.signal, onProgress: progress });
      return { result, scenario };
    } catch (e) {
      if (e instanceof Error) Object.assign(e, { side });
      throw e;
    }
  }
}

/** @param {import("./core/types.d.ts").Progress} p @param {string} [before] @returns {[number | null, string]} */
function told(p, before = "") {
  const share = p.total > 0 ? Math.min(p.done / p.total, 1) : null;
  if (p.stage === "reading") return [share === null ? null : share * 0.1, "reading the trace"];
  if (p.stage === "reporting") return [1, "adding up"];
  return [share === null ? null : 0.1 + 0.9 * share, `${before}${p.done.toLocaleString("en-US")} of ${p.total.toLocaleString("en-US")} requests`];
}

/** The file of the requests. @param {State} s */
const nameOf = (s) => (get(s.shared, "source") === "sample" ? sampleFiles[String(get(s.shared, "sample"))] : s.trace);

/** The field of a flag that a sentence about a file asks for, as "want the name of the model (--execution-model)". @param {string} sentence */
function asked(sentence) {
  const id = / \(--([a-z-]+)\)$/.exec(sentence)?.[1].replaceAll("-", "_");
  return id && byId.has(id) ? id : undefined;
}

/** @param {unknown} e @param {State} s @returns {Fault} */
function faultOf(e, s) {
  const side = /** @type {{side?: "a" | "b"}} */ (e).side ?? "a";
  const sentence = e instanceof Error ? e.message : String(e);
  /** @type {Fault} */
  const fault = { sentence, side, fields: new Map(), other: [], wanting: e instanceof Wanting };
  if (e instanceof Wanting) fault.fields.set(e.field, sentence);
  if (e instanceof ComplaintError) {
    for (const c of e.complaints) {
      const field = asked(c.sentence) ?? fieldAt(c.path, valuesOf(s, side));
      const file = c.path === "trace" ? `${nameOf(s)}${c.line ? `:${c.line}` : ""}: ` : c.path === "timing" && s.durations ? `${s.durations}: ` : "";
      const sentence = c.sentence.startsWith(file.slice(0, -2)) ? c.sentence : file + c.sentence;
      if (field && !fault.fields.has(field)) fault.fields.set(field, sentence);
      else fault.other.push(sentence);
    }
  } else if (!fault.wanting) fault.other.push(sentence);
  return fault;
}
