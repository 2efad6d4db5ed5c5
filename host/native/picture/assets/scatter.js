import { cursor, frame, height, linear, logAxis, make, margin, niceStep, painted, path, spell, spellTime, spellValue, steps, svg } from "./draw.js";

// Draws points of a latency, of which less is better, and a value, of which more
// is, with the front of those that none beats in both. Shapes tell the kinds of
// points apart, without colour.

/** Draws a figure of kind scatter into a host element. */
export function drawScatter(figure, host) {
  const s = figure.scatter;
  const select = make("select", {}, ...s.measures.map((m, i) => make("option", { value: i }, m.name)));
  const stage = make("div", { class: "stage" });
  host.append(make("label", { class: "choose" }, "Latency", select), keys(s), stage);
  const paint = painted(stage, (width) => paintScatter(figure, s.measures[select.selectedIndex], stage, width));
  select.addEventListener("change", paint);
}

const outside = (x, y) => `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`;
const diamond = (x, y) => `M${x} ${y - 6.5}l6.5 6.5l-6.5 6.5l-6.5 -6.5Z`;

function shape(kind, x, y) {
  if (kind === "front") return svg("path", { class: "point front", d: diamond(x, y) });
  if (kind === "outside") return svg("path", { class: "point outside", d: outside(x, y) });
  return svg("circle", { class: "point", cx: x, cy: y, r: 4 });
}

function keys(s) {
  const kinds = ["front", "beside", "outside"];
  const shown = kinds.filter((k) => k !== "outside" || s.points.some((p) => p.outside));
  return make("ul", { class: "legend" }, ...shown.map((k) => {
    const image = svg("svg", { width: 16, height: 14, "aria-hidden": "true" }, shape(k, 8, 7));
    return make("li", { class: "key" }, image, s.legend[kinds.indexOf(k)]);
  }));
}

function paintScatter(figure, measure, stage, width) {
  const s = figure.scatter;
  const order = s.points.map((_, i) => i).filter((i) => measure.values[i] !== null && s.values[i] !== null);
  order.sort((a, b) => measure.values[a] - measure.values[b] || s.values[b] - s.values[a] || a - b);
  const [latency, value] = [order.map((i) => measure.values[i]).filter((v) => v > 0), order.map((i) => s.values[i])];
  const most = value.reduce((a, b) => Math.max(a, b), 0) || 1;
  const step = niceStep(most, 5);
  const top = Math.ceil((most * 1.03) / step) * step;
  const y = { at: linear(0, top, height - margin.bottom, margin.top), ticks: [...steps(0, top, step)], name: (t) => (t === 0 ? "0" : spell(t)) };
  const x = logAxis(latency[0] ?? 1, latency.at(-1) ?? 10, width);
  const image = frame({ title: `${figure.title}: ${s.name} by ${measure.name}`, about: figure.about }, stage, width, x, y);
  if (measure.limit) limit(image, measure, x, width);
  const place = (i) => [x.at(measure.values[i]), y.at(s.values[i])];
  image.append(svg("path", { class: "series s0", d: path(stairs(measure.front.map(place), width)) }));
  const onFront = new Set(measure.front);
  const kind = (i) => (onFront.has(i) ? "front" : s.points[i].outside ? "outside" : "beside");
  for (const k of ["outside", "beside", "front"]) for (const i of order) if (kind(i) === k) image.append(shape(k, ...place(i)));
  cursor(image, stage, {
    n: order.length,
    first: Math.max(order.findIndex((i) => onFront.has(i)), 0),
    find: (px, py) => order.reduce((best, i, k) => (far(place(i), px, py) < far(place(order[best]), px, py) ? k : best), 0),
    next: { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 },
    place: (k) => place(order[k]),
    dots: (k) => [[...place(order[k]), 1]],
    title: (k) => s.points[order[k]].name + (onFront.has(order[k]) ? ", on the front" : ""),
    rows: (k) => [
      ...s.points[order[k]].rows.map(([name, text]) => [null, name, text]),
      [null, measure.name, spellTime(measure.values[order[k]])],
      [null, s.name, spellValue(s.values[order[k]], s.unit)],
    ],
  });
}

const far = ([x, y], px, py) => (x - px) ** 2 + (y - py) ** 2;

// stairs join a front: what is possible at a latency is what its best point up to
// there gives.
function stairs(points, width) {
  const line = [];
  points.forEach(([px, py], i) => {
    if (i > 0) line.push([px, points[i - 1][1]]);
    line.push([px, py]);
  });
  if (points.length > 0) line.push([width - margin.right, points.at(-1)[1]]);
  return line;
}

function limit(image, measure, x, width) {
  if (!x.has(measure.limit)) return;
  const at = x.at(measure.limit);
  const left = at > width / 2;
  image.append(svg("line", { class: "mark", x1: at, x2: at, y1: margin.top, y2: height - margin.bottom }));
  image.append(svg("text", { class: "marked", x: at + (left ? -5 : 5), y: margin.top + 12, "text-anchor": left ? "end" : "start" }, `SLA ${spellTime(measure.limit)}`));
}
