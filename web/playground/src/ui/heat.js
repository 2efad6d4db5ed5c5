// A map of a value by worker and time. Its colours rise in lightness, so they
// are told apart without colour; the cursor tells the number.

import { make, spellTime } from "./dom.js";
import { picture } from "./plot.js";

/**
 * @typedef {object} Measure
 * @property {string} id
 * @property {string} label
 * @property {(row: number, i: number) => number} at NaN: none
 * @property {(x: number) => string} spell
 * @property {number} [top] of the scale; default: the highest value
 *
 * @typedef {{id: string, title: string, about: string, rows: string[], stepMs: number, n: number, endMs: number, measures: Measure[]}} Heat
 */

const ramp = [[52, 8, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/** @param {number} share @returns {number[]} */
function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  return ramp[i].map((c, k) => Math.round(c + (ramp[i + 1][k] - c) * (at - i)));
}

/** @param {Heat} h @returns {HTMLElement} */
export function heat(h) {
  let measure = h.measures[0];
  const rows = h.rows.length;
  const tall = Math.min(Math.max(Math.floor(320 / rows), 4), 26);
  const canvas = make("canvas", { class: "map", width: h.n, height: rows, style: `height:${rows * tall}px` });
  const ring = make("div", { class: "ring", hidden: true });
  const tip = make("div", { class: "tip", role: "status", hidden: true });
  const stage = make("div", { class: "stage mapped", tabindex: 0, role: "img" }, canvas, ring);
  const every = Math.max(1, Math.ceil(14 / tall));
  const names = make("div", { class: "rows", "aria-hidden": "true", style: `grid-auto-rows:${tall}px` }, ...h.rows.map((name, i) => make("span", {}, i % every === 0 ? name : "")));
  const scale = make("span", { class: "scale", "aria-hidden": "true" });
  const ends = make("span", { class: "ends" });
  let top = 1;
  const draw = () => {
    top = measure.top ?? 0;
    if (!measure.top) for (let r = 0; r < rows; r++) for (let i = 0; i < h.n; i++) top = Math.max(top, measure.at(r, i) || 0);
    top ||= 1;
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const pixels = pen.createImageData(Math.max(h.n, 1), rows);
    for (let r = 0; r < rows; r++) for (let i = 0; i < h.n; i++) {
      const x = measure.at(r, i);
      if (Number.isFinite(x)) pixels.data.set([...colour(x / top), 255], 4 * (r * h.n + i));
    }
    pen.putImageData(pixels, 0, 0);
    ends.textContent = `${measure.spell(0)} to ${measure.spell(top)}`;
    stage.setAttribute("aria-label", `${h.title}: ${measure.label}. Arrow keys move the cursor, Escape takes it away.`);
  };
  /** @type {[number, number] | null} */
  let at = null;
  const show = (/** @type {[number, number] | null} */ place) => {
    at = place && [Math.min(Math.max(place[0], 0), rows - 1), Math.min(Math.max(place[1], 0), h.n - 1)];
    tip.hidden = ring.hidden = at === null;
    if (!at) return;
    const [r, i] = at;
    const cell = canvas.clientWidth / h.n;
    ring.style.cssText = `left:${i * cell}px;top:${r * tall}px;width:${Math.max(cell, 3)}px;height:${tall}px`;
    tip.replaceChildren(make("strong", {}, `${h.rows[r]}, at ${spellTime(i * h.stepMs)}`), make("span", { class: "row" }, make("span", {}, measure.label), make("b", {}, measure.spell(measure.at(r, i)))));
    const x = names.offsetWidth + (i + 1) * cell + 10;
    const room = stage.offsetWidth + names.offsetWidth - tip.offsetWidth;
    tip.style.left = `${x > room ? Math.max(0, x - tip.offsetWidth - 20 - cell) : x}px`;
  };
  const point = (/** @type {PointerEvent} */ e) => {
    const box = canvas.getBoundingClientRect();
    show([Math.floor((e.clientY - box.top) / tall), Math.floor(((e.clientX - box.left) / box.width) * h.n)]);
  };
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerleave", () => show(null));
  stage.addEventListener("blur", () => show(null));
  stage.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [0, -10], PageDown: [0, 10], Home: [0, -h.n], End: [0, h.n] }[e.key];
    if (!by && e.key !== "Escape") return;
    e.preventDefault();
    show(by ? (at ? [at[0] + by[0], at[1] + by[1]] : [0, 0]) : null);
  });
  const choose = h.measures.length > 1 ? make("label", { class: "choose" }, "Show ", make("select", { onchange: (/** @type {Event} */ e) => {
    measure = h.measures[/** @type {HTMLSelectElement} */ (e.target).selectedIndex];
    draw();
  } }, ...h.measures.map((m) => make("option", { value: m.id }, m.label)))) : null;
  const png = make("button", { type: "button", class: "quiet", "aria-label": `Save ${h.title} as PNG`, onclick: () => picture({ id: h.id, title: `${h.title}: ${measure.label}, ${ends.textContent}` }, enlarged(canvas, tall)) }, "PNG");
  const ticks = make("div", { class: "under", "aria-hidden": "true" }, make("span", {}, "0"), make("span", {}, spellTime(h.endMs / 2)), make("span", {}, spellTime(h.endMs)));
  draw();
  return make("figure", { id: h.id, class: "wide" }, make("figcaption", {}, make("div", {}, make("h3", {}, h.title), make("p", {}, h.about)), png), make("div", { class: "choices" }, choose, scale, ends), make("div", { class: "plot grid" }, names, stage, tip), ticks);
}

/** A map with squares large enough for a picture. @param {HTMLCanvasElement} map @param {number} tall */
function enlarged(map, tall) {
  const big = make("canvas", { width: Math.max(map.clientWidth, 400) * devicePixelRatio, height: map.height * tall * devicePixelRatio });
  const pen = /** @type {CanvasRenderingContext2D} */ (big.getContext("2d"));
  pen.imageSmoothingEnabled = false;
  pen.drawImage(map, 0, 0, big.width, big.height);
  return big;
}

