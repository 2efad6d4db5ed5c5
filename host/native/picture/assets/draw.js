// Draws figures given as data: lines over time, distributions, maps of a value
// by row and time (points of two values: scatter.js). It owns scales, axes, cursors and their keys; it knows
// nothing of replays and asks the network for nothing. Fields of a figure: see
// doc.go beside this directory.

const svgNS = "http://www.w3.org/2000/svg";
const dashes = ["", "8 4", "2 4", "10 4 2 4"];
export const margin = { top: 10, right: 14, bottom: 28, left: 56 };
export const height = 250;

/** A new element with attributes and children; text children are text. */
export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(svgNS, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((c) => c !== undefined));
  return element;
}

/** A number with about three digits and groups of thousands. */
export function spell(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  const digits = size >= 100 || x === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : Math.min(2 - Math.floor(Math.log10(size)), 8);
  return x.toLocaleString("en-US", { maximumFractionDigits: digits });
}

// unitOf is the unit of time for values up to so many ms, and what it is in ms.
function unitOf(ms) {
  return ms < 1000 ? ["ms", 1] : ms < 120e3 ? ["s", 1e3] : ms < 7.2e6 ? ["min", 6e4] : ["h", 3.6e6];
}

/** A time given in ms, in a unit that suits it. */
export function spellTime(ms) {
  const [unit, one] = unitOf(ms);
  return ms === 0 ? "0" : spell(ms / one) + " " + unit;
}

/** A value with its unit: ms as a time, no unit as a share. */
export function spellValue(x, unit) {
  if (x === null || x === undefined) return "–";
  if (unit === "ms") return spellTime(x);
  if (!unit) return (100 * x).toLocaleString("en-US", { maximumFractionDigits: 1 }) + " %";
  return spell(x) + " " + unit;
}

// niceStep is the round number of 1, 2, 2.5 and 5 that cuts span into about n parts.
export function niceStep(span, n) {
  const rough = span / Math.max(n, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * ([1, 2, 2.5, 5].find((k) => k * power >= rough * 0.999) ?? 10);
}

// timeTicks are about n round times up to spanMs, and their names in one unit.
function timeTicks(spanMs, n) {
  const [unit, one] = unitOf(spanMs);
  const ticks = [...steps(0, spanMs, niceStep(spanMs / one, n) * one)];
  return { ticks, name: (ms) => (ms === 0 ? "0" : spell(ms / one) + " " + unit) };
}

export function* steps(from, to, step) {
  for (let k = Math.ceil(from / step - 1e-9) + 0; k * step <= to * (1 + 1e-9); k++) yield k * step + 0;
}

// cursors are told which moment is looked at, null: none.
const cursors = new Set();
const lookAt = (ms, from) => cursors.forEach((f) => f(ms, from));

/** Draws one figure of kind lines, cdf or heat into a host element, again when
 * its width changes. */
export function draw(figure, host) {
  const painter = { lines: paintLines, cdf: paintCDF, heat: paintHeat }[figure.kind];
  const hidden = new Set();
  const stage = make("div", { class: "stage" });
  if (figure.series?.length > 1) host.append(legend(figure, hidden, () => paint()));
  host.append(stage);
  const paint = painted(stage, (width) => painter(figure, stage, width, hidden));
}

/** Fills a stage when its width is known, and again when it changes or the
 * function that is returned is called. painter may return what ends a drawing. */
export function painted(stage, painter) {
  let width = 0;
  let stop = () => {};
  const paint = () => {
    stop();
    stage.replaceChildren();
    stop = painter(Math.max(width, 240)) ?? (() => {});
  };
  new ResizeObserver((entries) => {
    const now = Math.floor(entries[0].contentRect.width);
    if (now === width || now === 0) return;
    width = now;
    paint();
  }).observe(stage);
  return paint;
}

// legend names the series; a click hides one or shows it again.
function legend(figure, hidden, changed) {
  const list = make("ul", { class: "legend" });
  figure.series.forEach((s, i) => {
    const button = make("button", { type: "button", "aria-pressed": "true", title: "hide or show " + s.name }, swatch(i), s.name);
    button.addEventListener("click", () => {
      hidden.has(i) ? hidden.delete(i) : hidden.add(i);
      button.setAttribute("aria-pressed", String(!hidden.has(i)));
      changed();
    });
    list.append(make("li", {}, button));
  });
  return list;
}

function swatch(i) {
  const line = svg("line", { x1: 1, x2: 27, y1: 5, y2: 5, class: "series s" + (i % 4), "stroke-dasharray": dashes[i % 4] });
  return svg("svg", { width: 28, height: 10, class: "swatch", "aria-hidden": "true" }, line);
}

// frame is an empty plot: an image that takes the focus, with axes.
export function frame(figure, stage, width, x, y) {
  const keys = "Arrow keys move the cursor, Escape takes it away.";
  const image = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${figure.title}. ${figure.about ?? ""} ${keys}` });
  const right = width - margin.right;
  const bottom = height - margin.bottom;
  for (const t of y.ticks) {
    image.append(svg("line", { class: "grid", x1: margin.left, x2: right, y1: y.at(t), y2: y.at(t) }));
    image.append(svg("text", { class: "tick", x: margin.left - 8, y: y.at(t) + 4, "text-anchor": "end" }, y.name(t)));
  }
  for (const t of x.ticks) {
    image.append(svg("line", { class: x.grid ? "grid" : "notch", x1: x.at(t), x2: x.at(t), y1: x.grid ? margin.top : bottom, y2: bottom + (x.grid ? 0 : 4) }));
    const anchor = x.at(t) > right - 12 ? "end" : "middle";
    image.append(svg("text", { class: "tick", x: x.at(t), y: bottom + 18, "text-anchor": anchor }, x.name(t)));
  }
  image.append(svg("line", { class: "axis", x1: margin.left, x2: right, y1: bottom, y2: bottom }));
  stage.append(image);
  return image;
}

// path joins points, with gaps where there is no value; a point alone is a dot.
export function path(points) {
  let d = "";
  points.forEach((p, i) => {
    if (!p) return;
    const begins = !points[i - 1];
    d += (begins ? "M" : "L") + p[0].toFixed(1) + " " + p[1].toFixed(1);
    if (begins && !points[i + 1]) d += "h0.01";
  });
  return d;
}

// filled closes the runs of points down to a base line.
function filled(points, base) {
  let d = "";
  let first = null;
  points.forEach((p, i) => {
    if (!p) return;
    first ??= p;
    d += (first === p ? `M${p[0].toFixed(1)} ${base}L` : "L") + p[0].toFixed(1) + " " + p[1].toFixed(1);
    if (!points[i + 1]) {
      d += `L${p[0].toFixed(1)} ${base}Z`;
      first = null;
    }
  });
  return d;
}

export function linear(from, to, low, high) {
  return (v) => low + ((v - from) / (to - from || 1)) * (high - low);
}

function paintLines(figure, stage, width, hidden) {
  const shown = figure.series.map((s, i) => ({ ...s, i })).filter((s) => !hidden.has(s.i));
  const { stepMs, n, endMs } = figure.x;
  const span = Math.max(endMs, stepMs);
  let most = figure.unit ? 0 : 1;
  if (figure.unit) for (const s of shown) for (const v of s.values) most = Math.max(most, v ?? 0);
  const clock = figure.unit === "ms" ? unitOf(most) : ["", 1];
  const step = niceStep((most || 1) / clock[1], 5) * clock[1];
  const top = Math.max(Math.ceil(most / step - 1e-9), 1) * step;
  const x = { at: linear(0, span, margin.left, width - margin.right), ...timeTicks(span, width / 90) };
  const y = { at: linear(0, top, height - margin.bottom, margin.top), ticks: [...steps(0, top, step)] };
  y.name = (t) => (t === 0 ? "0" : figure.unit ? `${spell(t / clock[1])} ${clock[0]}` : spellValue(t));
  const image = frame(figure, stage, width, x, y);
  const middle = (i) => Math.min((i + 0.5) * stepMs, (i * stepMs + span) / 2);
  for (const s of shown) {
    const points = s.values.map((v, i) => (v === null ? null : [x.at(middle(i)), y.at(v)]));
    if (s.area) image.append(svg("path", { class: "area s" + (s.i % 4), d: filled(points, height - margin.bottom) }));
    image.append(svg("path", { class: "series s" + (s.i % 4), "stroke-dasharray": dashes[s.i % 4], d: path(points) }));
  }
  for (const m of figure.marks ?? []) {
    if (m.value > top) continue;
    image.append(svg("line", { class: "mark", x1: margin.left, x2: width - margin.right, y1: y.at(m.value), y2: y.at(m.value) }));
    image.append(svg("text", { class: "marked", x: width - margin.right - 4, y: y.at(m.value) - 5, "text-anchor": "end" }, `${m.name} ${spellValue(m.value, figure.unit)}`));
  }
  const rule = svg("line", { class: "cursor", y1: margin.top, y2: height - margin.bottom, visibility: "hidden" });
  image.append(rule);
  const follow = (ms) => {
    rule.setAttribute("visibility", ms === null ? "hidden" : "visible");
    if (ms !== null) rule.setAttribute("x1", x.at(ms)), rule.setAttribute("x2", x.at(ms));
  };
  cursors.add(follow);
  cursor(image, stage, {
    n,
    find: (px) => Math.floor((px - margin.left) / (width - margin.right - margin.left) * span / stepMs),
    next: { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10 },
    place: (i) => [x.at(middle(i)), margin.top],
    dots: (i) => shown.filter((s) => s.values[i] !== null).map((s) => [x.at(middle(i)), y.at(s.values[i]), s.i]),
    show: (i) => lookAt(i === null ? null : middle(i)),
    title: (i) => `${spellTime(i * stepMs)} to ${spellTime(Math.min((i + 1) * stepMs, span))}`,
    rows: (i) => shown.map((s) => [s.i, s.name, spellValue(s.values[i], figure.unit)]),
  });
  return () => cursors.delete(follow);
}

const clockName = (ms) => (ms < 1e3 ? ms + " ms" : ms < 6e4 ? ms / 1e3 + " s" : ms < 3.6e6 ? ms / 6e4 + " min" : ms / 3.6e6 + " h");

// logTicks are round times on a logarithmic scale, as many as there is room
// for, the roundest first.
function logTicks(from, to, at) {
  const chosen = [];
  for (const factors of [[1, 10, 100], [3, 30, 300], [2, 20, 200, 5, 50, 500]]) {
    for (const [one, end] of [[1e-3, 1], [1, 1e3], [1e3, 6e4], [6e4, 3.6e6], [3.6e6, 3.6e9]]) {
      for (const k of factors) {
        const t = Number((k * one).toPrecision(6));
        if (t >= end || t < from || t > to) continue;
        if (chosen.every((c) => Math.abs(at(c) - at(t)) > 58)) chosen.push(t);
      }
    }
  }
  return chosen;
}

/** A logarithmic axis of times in ms that has room for least to most, with
 * round ends. */
export function logAxis(least, most, width) {
  const edge = (v, round) => {
    const power = 10 ** Math.floor(Math.log10(v));
    const steps = [1, 2, 5, 10].map((k) => k * power);
    return round > 0 ? steps.find((s) => s >= v * 0.9999) : steps.findLast((s) => s <= v * 1.0001);
  };
  const from = Math.log10(edge(least, -1));
  const to = Math.max(Math.log10(edge(most, 1)), from + 0.3);
  const scale = linear(from, to, margin.left, width - margin.right);
  const at = (v) => scale(Math.log10(Math.max(v, 10 ** from)));
  const has = (v) => Math.log10(v) >= from && Math.log10(v) <= to;
  return { grid: true, at, has, name: clockName, ticks: logTicks(10 ** from * 0.999, 10 ** to * 1.001, at) };
}

function paintCDF(figure, stage, width, hidden) {
  const shown = figure.series.map((s, i) => ({ ...s, i })).filter((s) => !hidden.has(s.i));
  let least = Infinity;
  let most = 0;
  for (const s of shown) for (const v of s.values) if (v > 0) (least = Math.min(least, v)), (most = Math.max(most, v));
  if (most === 0) (least = 1), (most = 10);
  const x = logAxis(least, most, width);
  const y = { at: linear(0, 1, height - margin.bottom, margin.top), ticks: [0, 0.25, 0.5, 0.75, 0.9, 1], name: (t) => Math.round(100 * t) + " %" };
  const image = frame(figure, stage, width, x, y);
  for (const s of shown) {
    const points = s.values.map((v, i) => (v === null ? null : [x.at(v), y.at(figure.at[i])]));
    image.append(svg("path", { class: "series s" + (s.i % 4), "stroke-dasharray": dashes[s.i % 4], d: path(points) }));
  }
  (figure.marks ?? []).forEach((m, k) => {
    if (!x.has(m.value)) return;
    image.append(svg("line", { class: "mark", x1: x.at(m.value), x2: x.at(m.value), y1: margin.top, y2: height - margin.bottom }));
    const left = x.at(m.value) > width / 2;
    image.append(svg("text", { class: "marked", x: x.at(m.value) + (left ? -5 : 5), y: height - margin.bottom - 8 - 15 * k, "text-anchor": left ? "end" : "start" }, `${m.name} ${spellTime(m.value)}`));
  });
  cursor(image, stage, {
    n: figure.at.length,
    first: figure.at.indexOf(0.5),
    find: (px, py) => {
      const f = 1 - (py - margin.top) / (height - margin.bottom - margin.top);
      return figure.at.reduce((best, v, i) => (Math.abs(v - f) < Math.abs(figure.at[best] - f) ? i : best), 0);
    },
    next: { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -20, PageUp: 20 },
    place: (i) => [margin.left, y.at(figure.at[i])],
    dots: (i) => shown.filter((s) => s.values[i] !== null).map((s) => [x.at(s.values[i]), y.at(figure.at[i]), s.i]),
    title: (i) => `${(100 * figure.at[i]).toFixed(1).replace(/\.0$/, "")} % have at most`,
    rows: (i) => shown.map((s) => [s.i, s.name, spellValue(s.values[i], figure.unit)]),
  });
}

// cursor lets the pointer and the keys choose one of n places and shows it.
export function cursor(image, stage, o) {
  const dots = svg("g", {});
  image.append(dots);
  const tip = make("div", { class: "tip", role: "status", "aria-live": "polite", hidden: true });
  stage.append(tip);
  let at = null;
  const show = (i) => {
    at = i === null ? null : Math.min(Math.max(i, 0), o.n - 1);
    dots.replaceChildren();
    tip.hidden = at === null;
    o.show?.(at);
    if (at === null) return;
    for (const [cx, cy, s] of o.dots?.(at) ?? []) dots.append(svg("circle", { class: "dot s" + (s % 4), cx, cy, r: 4 }));
    tip.replaceChildren(make("strong", {}, o.title(at)));
    for (const [s, name, value] of o.rows(at)) {
      tip.append(make("span", { class: "row" }, s === null ? "" : swatch(s), make("span", {}, name), make("b", {}, value)));
    }
    const [px, py] = o.place(at);
    const box = image.getBoundingClientRect();
    const space = box.width - tip.offsetWidth;
    tip.style.left = Math.max(0, Math.min(px + 14 > space ? px - tip.offsetWidth - 14 : px + 14, space)) + "px";
    tip.style.top = Math.max(0, Math.min(py, box.height - tip.offsetHeight)) + "px";
  };
  const point = (e) => {
    const box = image.getBoundingClientRect();
    show(o.find(e.clientX - box.left, e.clientY - box.top));
  };
  image.addEventListener("pointermove", point);
  image.addEventListener("pointerdown", point);
  image.addEventListener("pointerleave", () => document.activeElement !== image && show(null));
  image.addEventListener("focus", () => image.matches(":focus-visible") && show(at ?? o.first ?? o.n - 1));
  image.addEventListener("blur", () => show(null));
  image.addEventListener("keydown", (e) => {
    const step = o.next[e.key];
    if (step !== undefined) show((at ?? 0) + (typeof step === "function" ? step(at ?? 0) : step));
    else if (e.key === "Home") show(0);
    else if (e.key === "End") show(o.n - 1);
    else if (e.key === "Escape") show(null);
    else return;
    e.preventDefault();
  });
}

// The map's colours rise in lightness, so they are told apart without colour.
const ramp = [[52, 8, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

function colour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const i = Math.min(Math.floor(at), ramp.length - 2);
  return ramp[i].map((c, k) => Math.round(c + (ramp[i + 1][k] - c) * (at - i)));
}

function paintHeat(figure, stage, width) {
  const { n, stepMs, endMs } = figure.x;
  const rows = figure.rows.length;
  const cells = (figure.bytes ??= Uint8Array.from(atob(figure.cells), (c) => c.charCodeAt(0)));
  const short = (name) => (width < 500 ? name.replace("worker ", "w").replace(", rank ", " r") : name);
  const left = 20 + 6.8 * Math.max(...figure.rows.map((name) => short(name).length), 6);
  const rowHeight = Math.min(Math.max(Math.floor(360 / rows), 2), 24);
  const wide = width - left - margin.right;
  const tall = rows * rowHeight;
  const canvas = make("canvas", { width: n, height: rows, class: "map", style: `left:${left}px;width:${wide}px;height:${tall}px` });
  const pen = canvas.getContext("2d");
  let top = 0; // of the scale: the highest value, rounded up to tenths
  for (const c of cells) if (c !== 255) top = Math.max(top, c / 254);
  top = Math.max(Math.ceil(top * 10 - 1e-9), 1) / 10;
  const pixels = pen.createImageData(n, rows);
  for (let i = 0; i < n * rows; i++) {
    if (cells[i] === 255) continue;
    pixels.data.set([...colour(cells[i] / 254 / top), 255], 4 * i);
  }
  pen.putImageData(pixels, 0, 0);
  const keys = "Arrow keys move the cursor, Escape takes it away.";
  const image = svg("svg", { width, height: tall + 58, tabindex: 0, role: "img", "aria-label": `${figure.title}. ${figure.about ?? ""} ${keys}` });
  const every = Math.max(Math.ceil(14 / rowHeight), 1);
  figure.rows.forEach((name, r) => {
    if (r % every === 0) image.append(svg("text", { class: "tick", x: left - 8, y: (r + 0.5) * rowHeight + 4, "text-anchor": "end" }, short(name)));
  });
  const span = n * stepMs;
  const { ticks, name } = timeTicks(endMs, wide / 90);
  for (const t of ticks) {
    const px = left + (t / span) * wide;
    image.append(svg("line", { class: "notch", x1: px, x2: px, y1: tall, y2: tall + 4 }));
    image.append(svg("text", { class: "tick", x: px, y: tall + 18, "text-anchor": t === 0 ? "start" : "middle" }, name(t)));
  }
  const parts = 40;
  for (let i = 0; i < parts; i++) {
    image.append(svg("rect", { x: left + i * 4, y: tall + 34, width: 4.5, height: 10, fill: `rgb(${colour(i / (parts - 1))})` }));
  }
  image.append(svg("text", { class: "tick", x: left - 8, y: tall + 43, "text-anchor": "end" }, "0 %"), svg("text", { class: "tick", x: left + parts * 4 + 8, y: tall + 43 }, spellValue(top)));
  const ring = svg("rect", { class: "ring", width: Math.max(wide / n, 3), height: rowHeight, visibility: "hidden" });
  image.append(ring);
  stage.append(canvas, image);
  const corner = (i) => [left + ((i % n) / n) * wide, Math.floor(i / n) * rowHeight];
  cursor(image, stage, {
    n: n * rows,
    first: 0,
    find: (px, py) => Math.min(Math.max(Math.floor(py / rowHeight), 0), rows - 1) * n + Math.min(Math.max(Math.floor(((px - left) / wide) * n), 0), n - 1),
    next: { ArrowLeft: -1, ArrowRight: 1, ArrowUp: (i) => (i >= n ? -n : 0), ArrowDown: (i) => (i < n * (rows - 1) ? n : 0), PageUp: 10, PageDown: -10 },
    place: corner,
    show: (i) => {
      ring.setAttribute("visibility", i === null ? "hidden" : "visible");
      if (i !== null) ring.setAttribute("x", corner(i)[0]), ring.setAttribute("y", corner(i)[1]);
      lookAt(i === null ? null : Math.min(((i % n) + 0.5) * stepMs, endMs));
    },
    title: (i) => `${figure.rows[Math.floor(i / n)]}, at ${spellTime((i % n) * stepMs)}`,
    rows: (i) => [[null, "", cells[i] === 255 ? "–" : spellValue(cells[i] / 254)]],
  });
}
