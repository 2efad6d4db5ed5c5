// Figures with lines: over time, over a setting, or distributions. uPlot draws
// them; this module adds what it lacks: lines told apart by dashes, a cursor for
// keys, goals, a table of the numbers, pictures, and both colour schemes.

import uPlot from "uplot";
import { make, save, spell, spellShare, spellTime, spellValue, styled, unitOf } from "./dom.js";

/**
 * @typedef {object} Line
 * @property {string} name
 * @property {ArrayLike<number>} y NaN: none
 * @property {boolean} [area] filled down to 0
 * @property {number} [look] colour and dashes; default: its place
 *
 * @typedef {{name: string, value: number}} Goal
 *
 * @typedef {object} Figure
 * @property {string} id
 * @property {string} title
 * @property {string} [about]
 * @property {ArrayLike<number>} x rising; ms if it is time
 * @property {"time" | "latency" | "number"} along what x is: simulated time, a latency (on a logarithmic scale), a setting
 * @property {boolean} [log] a setting on a logarithmic scale
 * @property {string} [xName] of a setting
 * @property {boolean} [yLog] y on a logarithmic scale where its values lie far apart
 * @property {string} unit of y: "ms", "share" (0 to 1) or another
 * @property {Line[]} lines
 * @property {Goal[]} [goals] on y; of latencies on x
 * @property {boolean} [points] mark every point
 */

const dashes = [[], [8, 4], [2, 4], [10, 4, 2, 4], [14, 5], [5, 3, 2, 3, 2, 3]];
const looks = dashes.length;
const height = 220;

/** @type {Set<() => unknown>} */
const drawn = new Set();

/** Draws all figures again, in the colours that hold now. */
export function repaint() {
  for (const f of drawn) f();
}

const svgNS = "http://www.w3.org/2000/svg";

/** The sample of a line. @param {number} look */
function swatch(look) {
  const svg = document.createElementNS(svgNS, "svg");
  svg.setAttribute("class", `swatch look${look % looks}`);
  svg.setAttribute("viewBox", "0 0 28 10");
  svg.setAttribute("aria-hidden", "true");
  const line = svg.appendChild(document.createElementNS(svgNS, "line"));
  for (const [key, value] of Object.entries({ x1: 0, x2: 28, y1: 5, y2: 5, "stroke-dasharray": dashes[look % looks].join(" ") || "none" })) line.setAttribute(key, String(value));
  return svg;
}

/** A figure as an element; it draws itself when it is shown. @param {Figure} f @returns {HTMLElement} */
export function plot(f) {
  const stage = make("div", { class: "stage", tabindex: 0, role: "img", "aria-label": described(f) });
  const tip = make("div", { class: "tip", role: "status", hidden: true });
  const hidden = new Set();
  /** @type {uPlot | null} */
  let u = null;
  let width = 0;
  const draw = () => {
    if (!element.isConnected) return;
    u?.destroy();
    u = width > 0 ? new uPlot(options(f, hidden, width, (i, left) => show(i, left)), data(f), stage) : null;
    u?.batch(() => {}); // draws at once: before a page is printed there is no later
  };
  /** @type {number | null} */
  let place = null;
  const show = (/** @type {number | null} */ i, /** @type {number} */ left) => {
    place = i;
    tip.hidden = i === null;
    if (i === null) return;
    tip.replaceChildren(make("strong", {}, placed(f, i)), ...f.lines.map((l, k) => (hidden.has(k) ? null : make("span", { class: "row" }, swatch(l.look ?? k), make("span", {}, l.name), make("b", {}, spellValue(l.y[i], f.unit))))).filter((e) => e !== null));
    const room = stage.clientWidth - tip.offsetWidth;
    const x = left + (u?.bbox.left ?? 0) / devicePixelRatio + 12;
    tip.style.left = `${Math.max(0, Math.min(x > room ? x - tip.offsetWidth - 24 : x, room))}px`;
  };
  stage.addEventListener("keydown", (e) => {
    const n = f.x.length;
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -n, End: n }[e.key];
    if (!u || n === 0 || (by === undefined && e.key !== "Escape")) return;
    e.preventDefault();
    if (by === undefined) return void u.setCursor({ left: -10, top: -10 });
    const i = Math.min(Math.max((place ?? (by > 0 ? -1 : n)) + by, 0), n - 1);
    u.setCursor({ left: u.valToPos(f.x[i], "x"), top: u.over.clientHeight / 3 });
  });
  stage.addEventListener("blur", () => u?.setCursor({ left: -10, top: -10 }));
  const legend = f.lines.length > 1 ? legendOf(f, hidden, draw) : null;
  const png = make("button", { type: "button", class: "quiet", "aria-label": `Save ${f.title} as PNG`, onclick: () => u && picture(f, u.root.querySelector("canvas"), hidden) }, "PNG");
  const caption = make("figcaption", {}, make("div", {}, make("h3", {}, f.title), f.about ? make("p", {}, f.about) : null), png);
  const element = make("figure", { id: f.id }, caption, legend, make("div", { class: "plot" }, stage, tip), numbers(f));
  repainted(element, stage, (now) => {
    width = now;
    draw();
  }, () => u?.destroy());
  return element;
}

/** Calls paint when a stage has a width, and again when that or the colours change, until its figure is gone. @param {HTMLElement} figure @param {HTMLElement} stage @param {(width: number) => void} paint @param {() => void} [gone] */
export function repainted(figure, stage, paint, gone) {
  let width = 0;
  const again = () => width > 0 && paint(width);
  drawn.add(again);
  new ResizeObserver((entries, observer) => {
    const now = Math.floor(entries[0].contentRect.width);
    if (now === 0 && !figure.isConnected) {
      gone?.();
      drawn.delete(again);
      observer.disconnect();
    } else if (now !== width && now > 0) {
      width = now;
      paint(now);
    }
  }).observe(stage);
}

/** What a picture shows, in words. @param {Figure} f */
function described(f) {
  const part = f.lines.map((l) => {
    let most = -Infinity;
    for (let i = 0; i < l.y.length; i++) if (l.y[i] > most) most = l.y[i];
    return `${l.name}: at most ${spellValue(most === -Infinity ? null : most, f.unit)}`;
  });
  return `${f.title}. ${f.along === "latency" ? f.lines.map((l) => l.name).join(", ") : part.join(", ")}. Arrow keys move the cursor, Escape takes it away.`;
}

/** @param {Figure} f @param {number} i */
function placed(f, i) {
  if (f.along === "latency") return `at most ${spellTime(f.x[i])}`;
  if (f.along === "number") return `${f.xName ?? ""} ${spell(f.x[i])}`;
  return `at ${spellTime(f.x[i])}`;
}

/** @param {Figure} f @returns {uPlot.AlignedData} */
function data(f) {
  return /** @type {any} */ ([Array.from(f.x), ...f.lines.map((l) => Array.from(l.y, (v) => (Number.isFinite(v) ? v : null)))]);
}

/** @param {Figure} f @param {Set<number>} hidden @param {number} width @param {(i: number | null, left: number) => void} show @returns {uPlot.Options} */
function options(f, hidden, width, show) {
  const ink = styled("--soft");
  const font = `12px ${styled("--font")}`;
  const grid = { stroke: styled("--line"), width: 1 };
  const top = highest(f, hidden);
  const axis = { stroke: ink, font, grid, ticks: { ...grid, size: 4 } };
  const least = lowest(f);
  const yLog = (f.yLog ?? false) && least > 0 && top / least > 20;
  const yTime = f.unit === "ms" ? unitOf(top) : null;
  const log = f.along === "latency" || f.log;
  return {
    width, height, legend: { show: false }, padding: [8, f.along === "latency" ? 22 : 10, 0, 0],
    scales: {
      x: { time: false, distr: log ? 3 : 1, range: log ? (_, lo, hi) => (f.along === "latency" && lo > 0 ? [edge(lo, -1), edge(hi, 1)] : hi > lo ? [lo, hi] : [lo / 2, hi * 2]) : (_, lo, hi) => (f.along === "time" ? [0, Math.max(hi, 1)] : hi > lo ? [lo, hi] : [lo - 1, hi + 1]) },
      y: yLog ? { distr: 3, range: [edge(least, -1), edge(top, 1)] } : { range: [0, f.unit === "share" ? 1.015 * (f.along === "latency" ? 1 : top) : top] },
    },
    axes: [
      { ...axis, ...(log && f.along === "latency" ? { grid: { ...grid, filter: decades }, ticks: { ...axis.ticks, filter: decades } } : {}), size: 28, label: f.xName, labelSize: f.xName ? 18 : 0, labelGap: 0, labelFont: font, space: 70, splits: f.along === "number" && f.x.length <= 16 ? () => Array.from(f.x) : f.along === "time" ? (_, __, lo, hi) => rounds(lo, hi, unitOf(hi)[1], width / 90) : undefined, values: (_, ticks) => xNames(f, ticks) },
      { ...axis, size: 58, space: 36, ...(yLog ? { grid: { ...grid, filter: decades }, ticks: { ...axis.ticks, filter: decades } } : {}), values: (_, ticks) => ticks.map((t) => (yLog ? (decade(t) ? seconds(Number(t.toPrecision(6))) : "") : f.unit === "share" ? spellShare(t) : yTime ? `${spell(t / yTime[1])} ${t === 0 ? "" : yTime[0]}` : spell(t))), splits: f.unit === "ms" && !yLog ? (_, __, lo, hi) => rounds(lo, hi, yTime ? yTime[1] : 1) : undefined },
    ],
    series: [{}, ...f.lines.map((l, k) => {
      const look = (l.look ?? k) % looks;
      return { show: !hidden.has(k), stroke: styled(`--s${look}`), width: 2, dash: dashes[look], fill: l.area ? styled(`--a${look}`) : undefined, points: { show: f.points ?? false, size: 7, fill: styled("--card") }, spanGaps: true }; // a value alone between gaps would not be seen
    })],
    cursor: { drag: { x: false, y: false }, points: { size: 8 }, y: false, sync: f.along === "time" ? { key: "time", setSeries: false, scales: ["x", null] } : undefined },
    hooks: {
      draw: [(u) => drawGoals(f, u)],
      setCursor: [(u) => {
        const i = u.cursor.idx;
        const inside = (u.cursor.left ?? -10) >= 0 && i !== null && i !== undefined;
        const mine = u.root.matches(":hover") || u.root.parentElement === document.activeElement;
        show(inside && mine ? /** @type {number} */ (i) : null, u.cursor.left ?? 0);
      }],
    },
  };
}

/** Whether a value is 1, 10, 100, ms and so on. @param {number | null} t */
const decade = (t) => t !== null && /^10*$|^0\.0*1$/.test(String(Number(t.toPrecision(6))));
/** @param {uPlot} _ @param {number[]} ticks */
const decades = (_, ticks) => ticks.map((t) => (decade(t) ? t : null));
const seconds = (/** @type {number} */ ms) => (ms < 1000 ? `${ms} ms` : `${spell(ms / 1000)} s`);

/** The next 1, 2 or 5 times a power of ten, below or above. @param {number} v @param {number} side */
function edge(v, side) {
  const power = 10 ** Math.floor(Math.log10(v));
  const steps = [1, 2, 5, 10].map((k) => k * power);
  return (side > 0 ? steps.find((s) => s >= v) : steps.findLast((s) => s <= v)) ?? v;
}

/** The least value above 0, goals with it. @param {Figure} f */
function lowest(f) {
  let least = Infinity;
  for (const l of f.lines) for (let i = 0; i < l.y.length; i++) if (l.y[i] > 0 && l.y[i] < least) least = l.y[i];
  for (const g of f.goals ?? []) least = Math.min(least, g.value);
  return Number.isFinite(least) ? least : 0;
}

/** The end of the axis of values. @param {Figure} f @param {Set<number>} hidden */
function highest(f, hidden) {
  let most = 0;
  f.lines.forEach((l, k) => {
    if (!hidden.has(k)) for (let i = 0; i < l.y.length; i++) if (l.y[i] > most) most = l.y[i];
  });
  if (f.unit === "share") return Math.max(Math.ceil(most * 10 - 1e-9) / 10, 0.1);
  for (const g of f.goals ?? []) if (f.along !== "latency" && g.value < most * 3) most = Math.max(most, g.value);
  return most > 0 ? most * 1.06 : 1;
}

/** About n round values between two, in a unit of time. @param {number} lo @param {number} hi @param {number} one @param {number} [n] */
export function rounds(lo, hi, one, n = 5) {
  const rough = (hi - lo) / one / n;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = one * power * ([1, 2, 2.5, 5].find((k) => k * power >= rough) ?? 10);
  const found = [];
  for (let k = Math.ceil(lo / step); k * step <= hi; k++) found.push(k * step);
  return found;
}

/** @param {Figure} f @param {(number | null)[]} ticks */
function xNames(f, ticks) {
  if (f.along === "number") return ticks.map((t) => (t === null ? "" : spell(t)));
  if (f.along === "latency") return ticks.map((t) => (t === null || !decade(t) ? "" : seconds(Number(t.toPrecision(6)))));
  const [unit, one] = unitOf(f.x.length ? f.x[f.x.length - 1] : 1);
  return ticks.map((t) => (t === null ? "" : t === 0 ? "0" : `${spell(t / one)} ${unit}`));
}

/** @param {Figure} f @param {uPlot} u */
function drawGoals(f, u) {
  const pen = u.ctx;
  const one = devicePixelRatio;
  pen.save();
  pen.strokeStyle = pen.fillStyle = styled("--ink");
  pen.lineWidth = 1.5 * one;
  pen.setLineDash([3 * one, 3 * one]);
  pen.font = `600 ${12 * one}px ${styled("--font")}`;
  (f.goals ?? []).forEach((g, k) => {
    const across = f.along !== "latency";
    const scale = u.scales[across ? "y" : "x"];
    if (g.value < (scale.min ?? 0) || g.value > (scale.max ?? 0)) return;
    const p = u.valToPos(g.value, across ? "y" : "x", true);
    const { left, top, width, height: tall } = u.bbox;
    pen.beginPath();
    pen.moveTo(across ? left : p, across ? p : top);
    pen.lineTo(across ? left + width : p, across ? p : top + tall);
    pen.stroke();
    const text = `${g.name} ${spellValue(g.value, across ? f.unit : "ms")}`;
    const right = across || p > left + width / 2;
    pen.textAlign = right ? "right" : "left";
    const x = across ? left + width - 4 * one : p + (right ? -5 : 5) * one;
    const y = across ? Math.max(p - 5 * one, top + 12 * one) : top + tall - (8 + 15 * k) * one;
    pen.lineJoin = "round";
    pen.setLineDash([]);
    pen.strokeStyle = styled("--card");
    pen.lineWidth = 4 * one;
    pen.strokeText(text, x, y);
    pen.fillText(text, x, y);
    pen.strokeStyle = styled("--ink");
    pen.lineWidth = 1.5 * one;
    pen.setLineDash([3 * one, 3 * one]);
  });
  pen.restore();
}

/** Names the lines; a press hides one or shows it again. @param {Figure} f @param {Set<number>} hidden @param {() => void} changed */
function legendOf(f, hidden, changed) {
  return make("ul", { class: "legend" }, ...f.lines.map((l, k) => {
    const button = make("button", { type: "button", "aria-pressed": "true" }, swatch(l.look ?? k), l.name);
    button.addEventListener("click", () => {
      if (!hidden.delete(k)) hidden.add(k);
      button.setAttribute("aria-pressed", String(!hidden.has(k)));
      changed();
    });
    return make("li", {}, button);
  }));
}

/** The values as a table, made when it is opened. @param {Figure} f */
function numbers(f) {
  const element = make("details", { class: "numbers" }, make("summary", {}, "Numbers"));
  element.addEventListener("toggle", () => {
    if (element.childElementCount > 1) return;
    const first = f.along === "time" ? "time" : f.along === "latency" ? "at most" : f.xName ?? "";
    const spelt = (/** @type {number} */ x) => (f.along === "number" ? spell(x) : spellTime(x));
    element.append(table(`${f.title}, numbers`, [first, ...f.lines.map((l) => l.name)], Array.from(f.x, (x, i) => [spelt(x), ...f.lines.map((l) => spellValue(l.y[i], f.unit))])));
  });
  return element;
}

/** A table that scrolls in itself. @param {string} label @param {string[]} head @param {(string | Node)[][]} body */
export function table(label, head, body) {
  const row = (/** @type {(string | Node)[]} */ cells) => make("tr", {}, ...cells.map((c, i) => make(i === 0 ? "th" : "td", i === 0 ? { scope: "row" } : {}, c)));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, make("table", {}, make("thead", {}, make("tr", {}, ...head.map((h) => make("th", { scope: "col" }, h)))), make("tbody", {}, ...body.map(row))));
}

/** Saves a drawing with its title and legend as a picture. @param {Pick<Figure, "id" | "title"> & {lines?: Line[]}} f @param {HTMLCanvasElement | null} drawing @param {Set<number>} [hidden] */
export function picture(f, drawing, hidden = new Set()) {
  if (!drawing) return;
  const one = devicePixelRatio;
  const lines = (f.lines ?? []).map((l, k) => ({ ...l, k })).filter((l) => !hidden.has(l.k));
  const head = (lines.length > 1 ? 58 : 36) * one;
  const canvas = make("canvas", { width: drawing.width + 24 * one, height: drawing.height + head + 12 * one });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.fillStyle = styled("--card");
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = styled("--ink");
  pen.font = `600 ${15 * one}px ${styled("--font")}`;
  pen.fillText(f.title, 12 * one, 24 * one);
  pen.font = `${12 * one}px ${styled("--font")}`;
  let x = 12 * one;
  if (lines.length > 1) for (const l of lines) {
    const look = (l.look ?? l.k) % looks;
    pen.strokeStyle = styled(`--s${look}`);
    pen.lineWidth = 2 * one;
    pen.setLineDash(dashes[look].map((d) => d * one));
    pen.beginPath();
    pen.moveTo(x, 42 * one);
    pen.lineTo(x + 28 * one, 42 * one);
    pen.stroke();
    pen.fillText(l.name, x + 34 * one, 46 * one);
    x += 50 * one + pen.measureText(l.name).width;
  }
  pen.drawImage(drawing, 12 * one, head);
  canvas.toBlob((blob) => blob && save(`${f.id}.png`, blob, "image/png"), "image/png");
}
