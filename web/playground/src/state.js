// The whole state of the page, and its link. A link has readable keys, one per
// setting that is not the default: #v=1&workers=4&B.workers=8&view=compare. A
// setting of B stands there only where B differs from A.

import { byId, fleetFields, get, matters, read, sharedFields, standard } from "./fields.js";

/**
 * @typedef {import("./fields.js").Values} Values
 * @typedef {import("./fields.js").Value} Value
 * @typedef {"run" | "compare" | "sweep"} View
 *
 * @typedef {{field: string, from: number, to: number, points: number}} Sweep
 *
 * @typedef {object} State
 * @property {Values} shared workload and goals
 * @property {Values} a the fleet
 * @property {Values} b in what the other fleet of a comparison differs from it
 * @property {View} view
 * @property {Sweep} sweep
 * @property {string} trace name of a dropped trace, "" for none
 * @property {string} durations name of a dropped file of durations
 */

export const version = "1";
/** @type {View[]} */
export const views = ["run", "compare", "sweep"];
export const mostPoints = 25;

/** @returns {State} */
export const blank = () => ({ shared: {}, a: {}, b: {}, view: "run", sweep: { field: "workers", from: 1, to: 8, points: 8 }, trace: "", durations: "" });

/** What the page opens with. @returns {State} */
export function opening() {
  return { ...blank(), shared: { sla_ttft_ms: 500, sla_itl_ms: 25 }, a: { workers: 4, num_gpu_blocks: 3200 }, b: { router: "kv_router" } };
}

/** The values that a fleet's fields depend on: its own and the shared ones. @param {State} s @param {"a" | "b"} side @returns {Values} */
export const valuesOf = (s, side) => (side === "a" ? { ...s.shared, ...s.a } : { ...s.shared, ...s.a, ...s.b });

/** The link of a state, without #. @param {State} s */
export function link(s) {
  /** @type {[string, string][]} */
  const pairs = [["v", version]];
  for (const f of sharedFields) if (f.id in s.shared) pairs.push([f.id, String(s.shared[f.id])]);
  for (const f of fleetFields) if (f.id in s.a) pairs.push([f.id, String(s.a[f.id])]);
  for (const f of fleetFields) if (f.id in s.b) pairs.push([`B.${f.id}`, String(s.b[f.id])]);
  if (s.view !== "run") pairs.push(["view", s.view]);
  const plain = blank().sweep;
  if (s.sweep.field !== plain.field) pairs.push(["sweep", s.sweep.field]);
  for (const key of /** @type {const} */ (["from", "to", "points"])) if (s.sweep[key] !== plain[key]) pairs.push([key, String(s.sweep[key])]);
  if (s.trace) pairs.push(["trace", s.trace]);
  if (s.durations) pairs.push(["durations", s.durations]);
  return pairs.map(([k, v]) => `${k}=${encodeURIComponent(v)}`).join("&");
}

/**
 * The state of a link. What cannot be understood is left out and named; numbers
 * out of range stay, to be marked where they are typed.
 * @param {string} hash @returns {{state: State, ignored: string[]}}
 */
export function parse(hash) {
  const text = hash.replace(/^#/, "");
  if (text === "") return { state: opening(), ignored: [] };
  const s = blank();
  /** @type {string[]} */
  const ignored = [];
  const pairs = text.split("&").filter((p) => p !== "").slice(0, 300).map(split);
  const said = pairs.find(([k]) => k === "v")?.[1];
  if (said !== version) return { state: opening(), ignored: [said === undefined ? "the link has no version" : `the link has version ${said.slice(0, 20)}, and this page reads ${version}`] };
  for (const [key, value] of pairs) {
    if (value === null || value.length > 300) ignored.push(key.slice(0, 40));
    else if (key !== "v" && !setting(s, key, value) && !outside(s, key, value)) ignored.push(key.slice(0, 40));
  }
  return { state: s, ignored };
}

/** @param {string} pair @returns {[string, any]} */
function split(pair) {
  const i = pair.indexOf("=");
  const key = i < 0 ? pair : pair.slice(0, i);
  try {
    return [decodeURIComponent(key), i < 0 ? null : decodeURIComponent(pair.slice(i + 1).replaceAll("+", "%20"))];
  } catch {
    return [key, null];
  }
}

/** @param {State} s @param {string} key @param {string} text */
function setting(s, key, text) {
  const other = key.startsWith("B.");
  const f = byId.get(other ? key.slice(2) : key);
  if (!f || (other && !fleetFields.includes(f))) return false;
  if (f.kind === "choice" && !f.choices?.some(([v]) => v === text)) return false;
  if (f.kind === "toggle" && text !== "true" && text !== "false") return false;
  (other ? s.b : sharedFields.includes(f) ? s.shared : s.a)[f.id] = read(f, text);
  return true;
}

/** What is no setting of a run. @param {State} s @param {string} key @param {string} text */
function outside(s, key, text) {
  const x = Number(text);
  if (key === "view" && views.includes(/** @type {View} */ (text))) s.view = /** @type {View} */ (text);
  else if (key === "sweep" && byId.get(text)?.sweep) s.sweep.field = text;
  else if ((key === "from" || key === "to") && Number.isFinite(x)) s.sweep[key] = x;
  else if (key === "points" && Number.isInteger(x) && x >= 2 && x <= mostPoints) s.sweep.points = x;
  else if (key === "trace" || key === "durations") s[key] = text;
  else return false;
  return true;
}

/** Sets a value of a fleet or of what both share. What is the default, or as in A, leaves no trace. @param {State} s @param {"a" | "b"} side @param {string} id @param {Value} value */
export function put(s, side, id, value) {
  const f = byId.get(id);
  if (!f) return;
  const shared = sharedFields.includes(f);
  const to = shared ? s.shared : s[side];
  const { [id]: _, ...others } = valuesOf(s, side);
  const plain = side === "b" && !shared ? get(valuesOf(s, "a"), id) : standard(f, others);
  if (value === plain) delete to[id];
  else to[id] = value;
}

/** Fields in which two fleets differ in what matters. @param {State} s @returns {import("./fields.js").Field[]} */
export function differences(s) {
  const [a, b] = [valuesOf(s, "a"), valuesOf(s, "b")];
  return fleetFields.filter((f) => {
    const [x, y] = [matters(f, a), matters(f, b)];
    return x !== y ? false : x && get(a, f.id) !== get(b, f.id);
  });
}

/** The values of a sweep, rounded as its field is. @param {Sweep} w @returns {number[]} */
export function sweepValues({ field, points, ...ends }) {
  const f = byId.get(field);
  const w = { from: Math.min(ends.from, ends.to), to: Math.max(ends.from, ends.to) }; // a link may have it the other way round
  const log = (f?.log ?? false) && w.from > 0 && w.to > 0;
  const n = Math.max(points, 2);
  if (f?.kind === "whole" && Number.isInteger(w.from) && Number.isInteger(w.to) && w.to - w.from < n) return Array.from({ length: w.to - w.from + 1 }, (_, i) => w.from + i);
  const found = Array.from({ length: n }, (_, i) => {
    const x = log ? w.from * (w.to / w.from) ** (i / (n - 1)) : w.from + ((w.to - w.from) * i) / (n - 1);
    return f?.kind === "whole" ? Math.round(x) : Number(x.toPrecision(3));
  });
  return [...new Set(found)].sort((x, y) => x - y);
}
