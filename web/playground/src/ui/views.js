// What the results show: one fleet, two, or a sweep.

import { byId, get, named } from "../fields.js";
import { differences, valuesOf } from "../state.js";
import { cards, percentiles } from "./cards.js";
import { both, figures } from "./charts.js";
import { make, plural, spell } from "./dom.js";
import { change, gpus, metrics, spelt } from "./metrics.js";
import { plot, table } from "./plot.js";
import { storiesOf, timelineOf } from "./recorded.js";
import { stories } from "./story.js";

/**
 * @typedef {import("../state.js").State} State
 * @typedef {import("../runner.js").Ran} Ran
 * @typedef {import("./charts.js").Goals} Goals
 */

/** @param {State} s @returns {Goals} */
function goalsOf(s) {
  const number = (/** @type {string} */ id) => {
    const x = s.shared[id];
    return typeof x === "number" ? x : null;
  };
  return { ttft: number("sla_ttft_ms"), itl: number("sla_itl_ms"), e2e: number("sla_e2e_ms") };
}

/** @param {string[]} list */
function warnings(list) {
  return list.length === 0 ? null : make("ul", { class: "warned", "aria-label": "Warnings" }, ...list.map((w) => make("li", {}, w)));
}

/**
 * What is shown at once, and the figures, which need a recording.
 * @typedef {{head: Node[], body: Node[] | null}} Shown
 */

/** @param {State} s @param {Ran} a @returns {Shown} */
export function runView(s, { result }) {
  const r = result.recording;
  const head = shown([warnings(result.warnings), cards(result, r?.inside ?? null), percentiles(result)]);
  if (!r) return { head, body: null };
  return { head, body: [make("div", { class: "figures" }, ...figures(r, goalsOf(s)), timelineOf(r), stories(storiesOf(result, r)))] };
}

/** @param {(Node | null)[]} list @returns {Node[]} */
const shown = (list) => list.filter((e) => e !== null);

/** Whether a number has its unit beside it; else it stands in the heading. @param {import("./metrics.js").Metric} m */
const own = (m) => m.unit === "ms" || m.unit === "share";
/** @param {import("./metrics.js").Metric} m */
const headed = (m) => (own(m) || !m.unit ? m.label : `${m.label}, ${m.unit}`);

/** @param {State} s @param {Ran} a @param {Ran} b @returns {Shown} */
export function compareView(s, a, b) {
  const [va, vb] = [valuesOf(s, "a"), valuesOf(s, "b")];
  const what = differences(s).map((f) => `${f.label}: ${labelled(f, get(va, f.id))} → ${labelled(f, get(vb, f.id))}`);
  const rows = metrics.map((m) => ({ m, a: m.of(a.result), b: m.of(b.result) })).filter((r) => Number.isFinite(r.a) || Number.isFinite(r.b));
  const body = rows.map(({ m, a: x, b: y }) => {
    const c = change(m, x, y);
    const mark = { better: "✓ ", worse: "✕ ", same: "", "": "" }[c.verdict];
    return [headed(m), spelt(x, own(m) ? m.unit : ""), spelt(y, own(m) ? m.unit : ""), make("span", { class: c.verdict }, `${mark}${c.text}`, c.verdict === "better" || c.verdict === "worse" ? make("span", { class: "word" }, ` ${c.verdict}`) : null)];
  });
  const told = ["ttft-p99", "itl-p99", "goodput", "output-gpu"].flatMap((id) => {
    const r = rows.find((q) => q.m.id === id);
    return r ? [`${r.m.label} ${change(r.m, r.a, r.b).text}`] : [];
  });
  const sheet = make("section", { class: "sheet", id: "comparison", "aria-labelledby": "comparison-title" }, make("h2", { id: "comparison-title" }, "B against A"),
    make("p", { class: "verdict" }, told.join(" · ")),
    make("p", {}, what.length > 0 ? `What differs: ${what.join("; ")}.` : "Both fleets are the same: change one of B's settings."));
  const scroll = table("Comparison", ["Metric", "A", "B", "change"], body);
  scroll.classList.add("tall");
  sheet.append(scroll);
  const [ca, cb] = [a.result.recording, b.result.recording];
  const head = shown([warnings([...a.result.warnings.map((w) => `A: ${w}`), ...b.result.warnings.map((w) => `B: ${w}`)]), sheet]);
  return { head, body: ca && cb ? [make("div", { class: "figures" }, ...both(ca, cb, goalsOf(s)))] : null };
}

/** @param {import("../fields.js").Field} f @param {import("../fields.js").Value} x */
function labelled(f, x) {
  if (x === "") return f.unset ?? "none";
  if (f.kind === "toggle") return x ? "on" : "off";
  return f.choices?.find(([c]) => c === x)?.[1] ?? (typeof x === "number" ? spell(x) : String(x));
}

/** @param {State} s @param {{x: number, ran: Ran | null, fault: string}[]} points @param {boolean} whole @returns {Shown} */
export function sweepView(s, points, whole) {
  const f = byId.get(s.sweep.field);
  if (!f) return { head: [], body: [] };
  const ran = points.flatMap((p) => (p.ran ? [{ x: p.x, r: p.ran.result }] : []));
  const x = Float64Array.from(ran, (p) => p.x);
  const goals = goalsOf(s);
  const log = (f.log ?? false) && x.length > 2 && x[0] > 0 && x[x.length - 1] / x[0] > 12;
  /** @param {string} id @param {string} title @param {string} unit @param {[string, string][]} lines @param {number | null} [goal] */
  const curve = (id, title, unit, lines, goal = null) => plot({
    id, title, along: "number", log, yLog: unit === "ms", xName: named(f), x, unit, points: true, goals: goal === null ? [] : [{ name: "goal", value: goal }],
    lines: lines.map(([name, metric]) => ({ name, y: Float64Array.from(ran, (p) => metrics.find((m) => m.id === metric)?.of(p.r) ?? NaN) })),
  });
  const list = ran.length === 0 ? [] : [
    curve("sweep-ttft", "TTFT", "ms", [["p50", "ttft-p50"], ["p90", "ttft-p90"], ["p99", "ttft-p99"]], goals.ttft),
    curve("sweep-itl", "ITL", "ms", [["p50", "itl-p50"], ["p90", "itl-p90"], ["p99", "itl-p99"]], goals.itl),
    curve("sweep-output", "Output tokens per second", "tokens/s", [["all GPUs", "output"], ["a GPU", "output-gpu"]]),
    goals.ttft ?? goals.itl ?? goals.e2e ? curve("sweep-goodput", "Requests within the goals", "share", [["within the goals", "goodput"]]) : curve("sweep-e2e", "Request latency", "ms", [["p50", "e2e-p50"], ["p99", "e2e-p99"]]),
    curve("sweep-hits", "Prefix hits", "share", [["prefix hits", "hits"]]),
    curve("sweep-latency", "Request latency", "ms", [["p50", "e2e-p50"], ["p99", "e2e-p99"]], goals.e2e),
  ].slice(0, goals.ttft ?? goals.itl ?? goals.e2e ? 6 : 5);
  const shownMetrics = metrics.filter((m) => ["ttft-p50", "ttft-p99", "itl-p50", "itl-p99", "goodput", "output", "output-gpu", "hits", "unserved"].includes(m.id)).filter((m) => ran.some((p) => Number.isFinite(m.of(p.r))));
  const body = points.map((p) => [spell(p.x), ...(p.ran ? shownMetrics.map((m) => spelt(m.of(/** @type {Ran} */ (p.ran).result), own(m) ? m.unit : "")) : [p.fault || "…", ...shownMetrics.slice(1).map(() => "")])]);
  const scroll = table("Sweep", [named(f), ...shownMetrics.map((m) => headed(m))], body);
  scroll.classList.add("tall");
  const sheet = make("section", { class: "sheet", id: "sweep-verdict", "aria-labelledby": "sweep-title" }, make("h2", { id: "sweep-title" }, `By ${within(f.label)}`), make("p", { class: "verdict" }, whole ? judged(f.label, ran, goals) : "Under way…"));
  const rows = make("section", { class: "sheet wide", "aria-labelledby": "points-title" }, make("h3", { id: "points-title" }, "Points"), scroll);
  return { head: [sheet], body: [make("div", { class: "figures" }, ...list, rows)] };
}

/** A label within a sentence. @param {string} label */
const within = (label) => (/^[A-Z][a-z]/.test(label) ? label[0].toLowerCase() + label.slice(1) : label);

/** Which points meet the goals, in a sentence: nine requests in ten within them. @param {string} name @param {{x: number, r: import("../core/types.d.ts").Result}[]} ran @param {Goals} goals */
function judged(name, ran, goals) {
  if (ran.length === 0) return "No point could be simulated.";
  if (goals.ttft === null && goals.itl === null && goals.e2e === null) {
    const output = (/** @type {typeof ran[number]} */ p) => p.r.summary.numbers.output_throughput_tok_s / gpus(p.r) || 0; // none: NaN
    const best = ran.reduce((p, q) => (output(q) > output(p) ? q : p));
    if (output(best) === 0) return "No point serves a request.";
    return `Most output per GPU at ${within(name)} ${spell(best.x)}. Set goals to see which points meet them.`;
  }
  const share = metrics.find((m) => m.id === "goodput");
  const good = ran.filter((p) => (share?.of(p.r) ?? 0) >= 0.9);
  if (good.length === 0) return "No point has 90 % of the requests within the goals.";
  if (good.length === ran.length) return "All points have 90 % of the requests within the goals.";
  const list = good.map((p) => spell(p.x));
  return `90 % of the requests are within the goals at ${within(name)} ${list.length > 1 ? `${list.slice(0, -1).join(", ")} and ${list[list.length - 1]}` : list[0]}.`;
}

/** What a run was, in a line. @param {Ran} a @param {number} tookMs */
export function ranLine(a, tookMs) {
  const n = a.result.summary.numbers;
  return `${plural(n.num_requests, "request")}, ${spell(n.duration_ms / 1000)} s simulated in ${spell(tookMs / 1000)} s`;
}
