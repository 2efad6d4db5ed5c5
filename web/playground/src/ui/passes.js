// The passes of one worker: each as long as it took, as high as its batch, with
// the prompts in it hatched. A cursor goes from pass to pass.

import { make, plural, spell, spellTime, styled, unitOf } from "./dom.js";
import { picture, repainted, rounds } from "./plot.js";

/**
 * Passes in the order of time.
 * @typedef {object} Passes
 * @property {Float64Array} startMs
 * @property {Float64Array} endMs
 * @property {Int32Array} prefills requests with prompt work
 * @property {Int32Array} prefillTokens
 * @property {Int32Array} decodes
 * @property {Int32Array} running after it
 * @property {Int32Array} waiting
 */

const tall = 150;
const left = 40;

/**
 * @param {object} o
 * @param {string[]} o.names of the ranks
 * @param {number} o.endMs
 * @param {string} [o.note] what is not there
 * @param {(rank: number) => Passes} o.of
 */
export function timeline(o) {
  const canvas = make("canvas", { class: "passes", style: `height:${tall + 24}px` });
  const stage = make("div", { class: "stage mapped", tabindex: 0, role: "img", "aria-label": "Passes of a worker. Left and right move from pass to pass, plus and minus zoom, Escape takes the cursor away." }, canvas);
  const tip = make("div", { class: "tip", role: "status", hidden: true });
  const choose = make("select", { id: "passes-of" }, ...o.names.map((name, i) => make("option", { value: i }, name)));
  let passes = o.of(0);
  let [from, to] = [0, 1];
  /** @type {number | null} */
  let cursor = null;
  const first = () => {
    const n = passes.startMs.length;
    from = n > 0 ? passes.startMs[0] : 0;
    to = n > 0 ? passes.endMs[Math.min(120, n - 1)] : 1;
  };
  const x = (/** @type {number} */ ms) => left + ((ms - from) / (to - from || 1)) * (canvas.clientWidth - left - 4);
  const draw = () => {
    const width = canvas.clientWidth;
    if (width === 0) return;
    const one = devicePixelRatio;
    [canvas.width, canvas.height] = [width * one, (tall + 24) * one];
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    pen.scale(one, one);
    paint(pen, width);
  };
  const paint = (/** @type {CanvasRenderingContext2D} */ pen, /** @type {number} */ width) => {
    const { startMs, endMs, prefills, decodes } = passes;
    let most = 1;
    const [a, b] = [after(endMs, from), Math.min(after(startMs, to), startMs.length)];
    for (let i = a; i < b; i++) most = Math.max(most, prefills[i] + decodes[i]);
    const y = (/** @type {number} */ n) => tall - (n / most) * (tall - 12);
    pen.font = `12px ${styled("--font")}`;
    for (const t of [...new Set(rounds(0, most, 1).filter(Number.isInteger))]) {
      pen.fillStyle = styled("--line");
      pen.fillRect(left, y(t), width - left, 1);
      pen.fillStyle = styled("--soft");
      pen.textAlign = "right";
      pen.fillText(String(t), left - 6, y(t) + 4);
    }
    const hatch = hatched(pen);
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, width - left, tall);
    pen.clip();
    for (let i = a; i < b; i++) {
      const [l, w] = [x(startMs[i]), Math.max(x(endMs[i]) - x(startMs[i]), 0.7)];
      pen.fillStyle = styledOnce("--s0");
      pen.fillRect(l, y(decodes[i]), w, tall - y(decodes[i]));
      if (prefills[i] > 0) {
        pen.fillStyle = w > 3 ? hatch : styledOnce("--s1");
        pen.fillRect(l, y(decodes[i] + prefills[i]), w, y(decodes[i]) - y(decodes[i] + prefills[i]));
      }
      if (w > 4) {
        pen.fillStyle = styledOnce("--card");
        pen.fillRect(l + w - 1, y(decodes[i] + prefills[i]), 1, tall);
      }
      if (i === cursor) {
        pen.strokeStyle = styledOnce("--ink");
        pen.lineWidth = 2;
        pen.strokeRect(l, 4, Math.max(w, 3), tall - 5);
      }
    }
    pen.restore();
    const [unit, unitMs] = unitOf(to);
    pen.textAlign = "center";
    pen.fillStyle = styled("--soft");
    for (const t of rounds(from, to, unitMs)) {
      if (x(t) < left || x(t) > width - 20) continue;
      pen.fillRect(x(t), tall, 1, 4);
      pen.fillText(`${Number((t / unitMs).toPrecision(8)).toLocaleString("en-US", { maximumFractionDigits: 4 })} ${unit}`, x(t), tall + 17);
    }
  };
  /** @type {Map<string, string>} */
  let colours = new Map();
  const styledOnce = (/** @type {string} */ name) => {
    const known = colours.get(name) ?? styled(name);
    colours.set(name, known);
    return known;
  };
  const show = (/** @type {number | null} */ i) => {
    const n = passes.startMs.length;
    cursor = i === null || n === 0 ? null : Math.min(Math.max(i, 0), n - 1);
    tip.hidden = cursor === null;
    if (cursor !== null) {
      const { startMs, endMs, prefills, prefillTokens, decodes, running, waiting } = passes;
      const span = to - from;
      if (startMs[cursor] < from || endMs[cursor] > to) [from, to] = [startMs[cursor] - span / 3, startMs[cursor] + (2 * span) / 3];
      tip.replaceChildren(make("strong", {}, `At ${spellTime(startMs[cursor])}, for ${spellTime(endMs[cursor] - startMs[cursor])}`),
        make("span", { class: "row" }, `${plural(prefills[cursor], "prefill")}${prefills[cursor] > 0 ? ` of ${spell(prefillTokens[cursor])} tokens` : ""}, ${plural(decodes[cursor], "decode")}`),
        make("span", { class: "row" }, `then ${spell(running[cursor])} running, ${spell(waiting[cursor])} waiting`));
      const at = x(startMs[cursor]) + 10;
      const room = stage.clientWidth - tip.offsetWidth;
      tip.style.left = `${Math.max(0, Math.min(at > room ? at - tip.offsetWidth - 20 : at, room))}px`;
    }
    draw();
  };
  const zoom = (/** @type {number} */ by) => {
    const middle = cursor === null ? (from + to) / 2 : passes.startMs[cursor];
    const span = Math.min(Math.max((to - from) * by, 5), o.endMs);
    from = Math.max(0, Math.min(middle - span / 2, o.endMs - span));
    to = from + span;
    draw();
  };
  const pan = (/** @type {number} */ by) => {
    const span = to - from;
    from = Math.max(0, Math.min(from + by * span, o.endMs - span));
    to = from + span;
    draw();
  };
  choose.addEventListener("change", () => {
    passes = o.of(Number(choose.value));
    cursor = null;
    tip.hidden = true;
    first();
    draw();
  });
  stage.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[e.key];
    if (by !== undefined) show(cursor === null && Number.isFinite(by) ? after(passes.endMs, from) : (cursor ?? 0) + by);
    else if (e.key === "+" || e.key === "=") zoom(0.5);
    else if (e.key === "-") zoom(2);
    else if (e.key === "Escape") show(null);
    else return;
    e.preventDefault();
  });
  stage.addEventListener("blur", () => show(null));
  canvas.addEventListener("pointermove", (e) => {
    const ms = from + ((e.offsetX - left) / (canvas.clientWidth - left - 4)) * (to - from);
    const i = after(passes.endMs, ms);
    show(i < passes.startMs.length && passes.startMs[i] <= ms ? i : null);
  });
  canvas.addEventListener("pointerleave", () => document.activeElement !== stage && show(null));
  const button = (/** @type {string} */ text, /** @type {string} */ label, /** @type {() => void} */ act) => make("button", { type: "button", class: "small", "aria-label": label, onclick: act }, text);
  const element = make("figure", { id: "passes", class: "wide" },
    make("figcaption", {}, make("div", {}, make("h3", {}, "Passes of a worker"), make("p", {}, `As long as each took, as high as its batch.${o.note ? ` ${o.note}` : ""}`)), make("button", { type: "button", class: "quiet", "aria-label": "Save the passes as PNG", onclick: () => picture({ id: "passes", title: `Passes of ${o.names[Number(choose.value)]}` }, canvas) }, "PNG")),
    make("div", { class: "choices" }, make("label", { class: "choose" }, "Of ", choose), button("−", "Zoom out", () => zoom(2)), button("+", "Zoom in", () => zoom(0.5)), button("◂", "Earlier", () => pan(-0.5)), button("▸", "Later", () => pan(0.5)),
      make("ul", { class: "keys" }, make("li", {}, make("span", { class: "stretch whole", "aria-hidden": "true" }), "decodes"), make("li", {}, make("span", { class: "stretch hatch", "aria-hidden": "true" }), "prefills"))),
    make("div", { class: "plot" }, stage, tip));
  first();
  repainted(element, stage, () => {
    colours = new Map();
    draw();
  });
  return element;
}

/** The first place whose value is above x. @param {Float64Array} rising @param {number} x */
function after(rising, x) {
  let [lo, hi] = [0, rising.length];
  while (lo < hi) {
    const middle = (lo + hi) >> 1;
    if (rising[middle] > x) hi = middle;
    else lo = middle + 1;
  }
  return lo;
}

/** @param {CanvasRenderingContext2D} pen */
function hatched(pen) {
  const tile = make("canvas", { width: 6, height: 6 });
  const t = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
  t.fillStyle = styled("--card");
  t.fillRect(0, 0, 6, 6);
  t.strokeStyle = styled("--s1");
  t.lineWidth = 2.5;
  for (const k of [-6, 0, 6]) {
    t.beginPath();
    t.moveTo(k - 1, 7);
    t.lineTo(k + 7, -1);
    t.stroke();
  }
  return /** @type {CanvasPattern} */ (pen.createPattern(tile, "repeat"));
}
