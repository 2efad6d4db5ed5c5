// The page: settings on the left, results on the right, the state in the link.

import { byId, fleetGroups, get, goalGroups, grids, workloadGroups } from "./fields.js";
import { files, foresee, isDurations, keep } from "./files.js";
import { Runner } from "./runner.js";
import { link, parse, put, valuesOf, views } from "./state.js";
import { controls } from "./ui/controls.js";
import { at, copy, debounced, make, say } from "./ui/dom.js";
import { examples } from "./ui/examples.js";
import { exportMenu } from "./ui/exports.js";
import { repaint } from "./ui/plot.js";
import { sweepBar } from "./ui/sweepbar.js";
import { compareView, ranLine, runView, sweepView } from "./ui/views.js";

/** @typedef {import("./state.js").View} View */

let { state, ignored } = parse(location.hash);
/** @type {"a" | "b"} */
let side = "a";
/** @type {import("./runner.js").Outcome | null} */
let outcome = null;
let firstMs = 0; // when the page had its first result
let numbersMs = 0; // how long the last run took to its numbers

/* Results. */

const status = make("div", { class: "status", id: "status" });
const head = make("div", {});
const body = make("div", { id: "figures" });
const panel = make("div", { id: "panel", role: "tabpanel", tabindex: -1 }, head, body);
const progress = make("progress", { max: 1, "aria-label": "Progress" });
const line = make("span", { id: "line", role: "status" });
const detail = make("span", { id: "detail" }); // changes too often to be told to those who hear the page
const runButton = make("button", { type: "button", id: "run", onclick: () => runner.start(state) }, "Run again");
const cancelButton = make("button", { type: "button", id: "cancel", onclick: () => runner.cancel() }, "Cancel");
const exporting = exportMenu(() => outcome);
/** @type {Record<View, string>} */
const names = { run: "One fleet", compare: "Compare A and B", sweep: "Sweep" };
const tabs = views.map((v) => make("button", { type: "button", role: "tab", id: `tab-${v}`, "aria-controls": "panel", onclick: () => look(v) }, names[v]));
const sweeping = sweepBar(() => state, (w) => {
  state.sweep = w;
  changed();
});

const runner = new Runner({
  began() {
    cancelButton.hidden = progress.hidden = false;
    runButton.hidden = true;
    progress.removeAttribute("value");
    line.textContent = "Simulating";
    outdated();
  },
  progress(share, text) {
    if (share === null) progress.removeAttribute("value");
    else progress.value = share;
    detail.textContent = text;
  },
  came(o, whole, ms) {
    outcome = o;
    if (!whole) numbersMs = ms;
    faults(null);
    const shown = o.view === "run" ? runView(state, o.a) : o.view === "compare" ? compareView(state, o.a, o.b) : sweepView(state, o.points, whole);
    head.replaceChildren(...shown.head);
    head.classList.remove("stale");
    if (shown.body) {
      body.replaceChildren(...shown.body);
      body.classList.remove("stale");
    }
    if (!firstMs) performance.mark("first-result", { startTime: (firstMs = performance.now()) });
    exporting.sync();
    if (!whole) return;
    stopped();
    const some = o.view === "sweep" ? o.points.find((p) => p.ran)?.ran : o.a;
    line.textContent = some ? (o.view === "sweep" ? `${o.points.length} points in ${(ms / 1000).toFixed(2)} s` : ranLine(some, numbersMs)) : "";
    document.body.dataset.ran = String(Number(document.body.dataset.ran ?? 0) + 1);
  },
  failed(f) {
    stopped();
    outcome = null;
    faults(f);
    line.textContent = f.wanting ? "Waiting for a file" : "Not simulated";
    const go = (/** @type {string} */ id) => make("button", { type: "button", class: "quiet", onclick: () => reveal(id) }, `Go to ${byId.get(id)?.label ?? id}`);
    const list = make("ul", { class: "faults" }, ...[...f.fields].map(([id, t]) => make("li", {}, t, " ", f.wanting ? null : go(id))), ...f.other.map((t) => make("li", {}, t)));
    head.classList.remove("stale");
    body.replaceChildren();
    head.replaceChildren(make("section", { class: f.wanting ? "sheet" : "failed", id: "failed" }, make("h2", {}, f.wanting ? "A file is missing" : state.view === "compare" ? `Fleet ${f.side.toUpperCase()} cannot be simulated` : "This cannot be simulated"), list));
    document.body.dataset.ran = String(Number(document.body.dataset.ran ?? 0) + 1);
  },
  cancelled() {
    stopped();
    line.textContent = "Cancelled";
  },
});

/** What is shown is of settings that have changed. */
function outdated() {
  head.classList.add("stale");
  body.classList.add("stale");
  panel.setAttribute("aria-busy", "true");
}

function stopped() {
  cancelButton.hidden = progress.hidden = true;
  runButton.hidden = false;
  detail.textContent = "";
  panel.removeAttribute("aria-busy");
  exporting.sync();
}

/** Takes away what another view or link has shown. */
function clear() {
  outcome = null;
  head.replaceChildren();
  body.replaceChildren();
  exporting.sync();
}

/** @param {View} view */
function look(view) {
  if (state.view === view) return;
  asked++;
  state.view = view;
  if (view !== "compare") side = "a";
  clear();
  try {
    history.pushState(null, "", `#${link(state)}`);
  } catch {
    write(); // as there
  }
  show();
  runner.start(state);
}

/* Settings. */

const host = {
  values: () => valuesOf(state, side),
  beside: () => (side === "b" ? valuesOf(state, "a") : null),
  /** @param {string} id @param {import("./fields.js").Value} value */
  change(id, value) {
    put(state, side, id, value);
    const grid = id === "grid" || (id === "timing" && value === "grid") ? grids.find((g) => g.file === get(host.values(), "grid")) : undefined;
    if (grid) put(state, side, "backend", grid.engine);
    const kind = byId.get(id)?.kind;
    changed(kind !== "choice" && kind !== "toggle");
  },
  /** @param {string} id */
  reset(id) {
    delete state.b[id];
    changed();
  },
};
const pickTrace = picker("trace", "Choose a trace", ".jsonl,.json,.csv,.gz");
const pickDurations = picker("durations", "Choose a file", ".npz,.json");
const shared = controls(workloadGroups, host, { source: pickTrace.element });
const goals = controls(goalGroups, host);
const fleet = controls(fleetGroups, host, { timing: pickDurations.element });
const sideNote = make("p", {});
const sideInputs = ["a", "b"].map((x) => make("input", { type: "radio", name: "side", id: `side-${x}`, value: x, onchange: () => {
  side = x === "b" ? "b" : "a";
  show();
} }));
const sides = make("div", { class: "group sides", id: "sides" }, make("fieldset", { class: "segments" }, make("legend", {}, "Fleet to edit"), ...sideInputs.flatMap((i) => [i, make("label", { for: i.id }, `Fleet ${i.value.toUpperCase()}`)])), sideNote);

/** @param {"trace" | "durations"} what @param {string} label @param {string} accept */
function picker(what, label, accept) {
  const input = make("input", { type: "file", accept, hidden: true, id: `file-${what}`, onchange: () => {
    const file = input.files?.[0];
    input.value = ""; // else to choose the same file again, after a change, would be none
    if (file) take(file, what);
  } });
  const name = make("p", {});
  const element = make("div", { class: "pick", id: `pick-${what}` }, make("button", { type: "button", onclick: () => input.click() }, label), input, name);
  const sync = () => {
    element.hidden = what === "trace" ? get(host.values(), "source") !== "file" : get(host.values(), "timing") !== "file";
    const file = files[what];
    if (file && file.name === state[what]) name.replaceChildren(make("strong", {}, file.name), `, ${Math.ceil(file.size / 1024).toLocaleString("en-US")} KiB. It stays in this browser.`);
    else name.textContent = what === "trace" ? "Or drop it anywhere: Mooncake, Dynamo, Weka, Azure, BurstGPT and others, also .gz." : "Or drop it anywhere: a .npz of the profiler, or a grid.";
  };
  return { element, sync };
}

/** @param {File} file @param {"trace" | "durations"} what */
function take(file, what) {
  keep(what, file);
  state[what] = file.name;
  put(state, what === "trace" ? "a" : side, what === "trace" ? "source" : "timing", "file");
  say(`${file.name} is taken as ${what === "trace" ? "the trace" : "pass durations"}`);
  changed();
}

/** @param {import("./runner.js").Fault | null} f */
function faults(f) {
  const marked = f && !f.wanting ? f.fields : new Map();
  if (f && state.view === "compare" && f.side !== side && f.fields.size > 0) {
    side = f.side;
    show();
  }
  for (const c of [shared, goals, fleet]) c.mark(marked);
}

const soon = debounced(250, (/** @type {number} */ n) => n === asked && runner.start(state));
let asked = 0; // a run that was put off is forgotten when a later one begins at once

/** Writes the link. Browsers let it change so many times in some seconds only; WebKit throws then, and it is made up for. */
function write() {
  try {
    history.replaceState(null, "", `#${link(state)}`);
  } catch {
    writeLater();
  }
}
const writeSoon = debounced(200, write);
const writeLater = debounced(1000, write);

/** After any change of the state by hand. @param {boolean} [more] more may follow soon, as when one types or moves a slider */
function changed(more = false) {
  show();
  asked++;
  if (more) {
    runner.cancel(true);
    outdated();
    writeSoon();
    soon(asked);
  } else {
    write();
    runner.start(state);
  }
}

/** Brings the page in line with the state. */
function show() {
  for (const t of tabs) {
    const on = t.id === `tab-${state.view}`;
    t.setAttribute("aria-selected", String(on));
    t.tabIndex = on ? 0 : -1;
  }
  panel.setAttribute("aria-labelledby", `tab-${state.view}`);
  sides.hidden = state.view !== "compare";
  for (const i of sideInputs) i.checked = i.value === side;
  sideNote.textContent = side === "a" ? "B is as A, except where it is changed." : "Settings that differ from A are marked.";
  sweeping.element.hidden = state.view !== "sweep";
  sweeping.sync();
  for (const c of [shared, goals, fleet, pickTrace, pickDurations]) c.sync();
}

/** Brings a field into view, and the focus to it. @param {string} id */
function reveal(id) {
  const field = document.querySelector(`[data-field="${id}"]`);
  field?.closest("details")?.setAttribute("open", "");
  const input = /** @type {HTMLElement | null} */ (field?.querySelector("input:not([type=range]), select") ?? null);
  input?.scrollIntoView({ block: "center" });
  input?.focus({ preventScroll: true });
}

/** Takes the state of the link. @param {boolean} first */
function open(first) {
  asked++;
  ({ state, ignored } = parse(location.hash));
  side = "a";
  const notice = at("notice");
  notice.hidden = ignored.length === 0;
  notice.textContent = ignored.length > 0 ? `Of this link, not understood and left out: ${ignored.join(", ")}.` : "";
  if (!first) {
    clear();
  }
  foresee(state);
  show();
  runner.start(state);
}

/* The rest of the page. */

function theme() {
  const select = /** @type {HTMLSelectElement} */ (at("theme"));
  const key = "dryserve-theme";
  const use = (/** @type {string} */ t) => {
    if (t === "light" || t === "dark") document.documentElement.dataset.theme = t;
    else delete document.documentElement.dataset.theme;
    repaint();
  };
  let stored = "auto";
  try {
    stored = localStorage.getItem(key) ?? "auto";
  } catch {
    // storage may be forbidden; the choice then lasts as long as the page
  }
  if (["light", "dark"].includes(stored)) select.value = stored;
  use(select.value);
  select.addEventListener("change", () => {
    use(select.value);
    try {
      localStorage.setItem(key, select.value);
    } catch {
      // as above
    }
  });
  // Paper is light. Figures are drawn for it before a browser makes its copy of the page; what Firefox tells of the scheme then would come too late.
  let printing = false;
  addEventListener("beforeprint", () => ((printing = true), use("light")));
  addEventListener("afterprint", () => ((printing = false), use(select.value)));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => printing || repaint());
}

function dropping() {
  const cover = at("drop");
  let depth = 0;
  const has = (/** @type {DragEvent} */ e) => e.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragenter", (e) => has(e) && (depth++, (cover.hidden = false)));
  addEventListener("dragleave", (e) => has(e) && --depth <= 0 && ((depth = 0), (cover.hidden = true)));
  addEventListener("dragover", (e) => has(e) && e.preventDefault());
  addEventListener("drop", async (e) => {
    if (!has(e)) return;
    e.preventDefault();
    [depth, cover.hidden] = [0, true];
    const dropped = [...(e.dataTransfer?.files ?? [])]; // the list is empty after the event
    const kinds = await Promise.all(dropped.map((f) => isDurations(f).catch(() => false)));
    for (const what of /** @type {const} */ (["durations", "trace"])) { // of several, what is said last is of the trace
      const found = dropped.filter((_, i) => kinds[i] === (what === "durations"));
      if (found.length > 0) take(found[0], what);
      if (found.length > 1) say(`Of ${found.length} files, ${found[0].name} is taken`);
    }
  });
}

function layout() {
  at("settings").append(...shared.elements, ...goals.elements, sides, ...fleet.elements);
  at("settings").addEventListener("submit", (e) => e.preventDefault());
  const list = make("div", { class: "tabs", role: "tablist", "aria-label": "What to show" }, ...tabs);
  list.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    const next = tabs[(views.indexOf(state.view) + by + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
  status.append(progress, line, detail, make("span", { class: "grow" }), cancelButton, runButton, exporting.element);
  at("results").append(make("div", { class: "bar" }, list), sweeping.element, status, panel);
  at("example-list").append(...examples.map((e) => make("li", {}, make("a", { href: `#${e.link}` }, e.title, make("small", {}, e.about)))));
  at("copy-link").addEventListener("click", () => copy(location.href.split("#")[0] + `#${link(state)}`, "link"));
  at("skip").addEventListener("click", (e) => {
    e.preventDefault();
    at("results").focus();
  });
  const jump = at("jump");
  const below = () => at("results").getBoundingClientRect().top > innerHeight / 2;
  const name = () => (jump.textContent = below() ? "Results ↓" : "Settings ↑");
  jump.addEventListener("click", () => at(below() ? "results" : "settings").scrollIntoView());
  addEventListener("scroll", name, { passive: true });
  name();
  for (const menu of document.querySelectorAll("details.menu")) {
    menu.addEventListener("keydown", (e) => /** @type {KeyboardEvent} */ (e).key === "Escape" && (menu.removeAttribute("open"), menu.querySelector("summary")?.focus()));
    menu.addEventListener("click", (e) => /** @type {HTMLElement} */ (e.target).closest("li") && menu.removeAttribute("open"));
    addEventListener("click", (e) => !menu.contains(/** @type {Node} */ (e.target)) && menu.removeAttribute("open"));
  }
}

runner.warm();
layout();
theme();
dropping();
addEventListener("hashchange", () => location.hash.replace(/^#/, "") !== link(state) && open(false));
open(true);
