import { draw, make, spell, spellTime, spellValue } from "./draw.js";
import { drawScatter } from "./scatter.js";

// Lays out a document (doc.go): cards, figures, tables, notes.

/** Fills root with a document. */
export function show(page, root) {
  document.title = page.title;
  root.append(make("header", {}, make("h1", {}, page.title), make("p", {}, page.subtitle)), cards(page.cards), contents(page.figures));
  const grid = make("div", { class: "figures" });
  for (const f of page.figures) grid.append(figure(f));
  root.append(grid);
  const notes = make("ul", {}, ...page.notes.map((n) => make("li", {}, n)));
  root.append(make("section", { class: "notes", id: "notes" }, make("h2", {}, "How these numbers were reduced"), notes));
}

function cards(list) {
  const element = make("dl", { class: "cards", "aria-label": "Summary" });
  for (const c of list) {
    const value = make("dd", { class: "value" }, c.value, c.unit ? make("small", {}, " " + c.unit) : "");
    const name = make("dt", {}, c.alarm ? make("span", { class: "alarm", title: "worth a look" }, "▲ ") : "", c.label);
    element.append(make("div", { class: c.alarm ? "card alarming" : "card" }, name, value, make("dd", { class: "detail" }, c.detail ?? "")));
  }
  return element;
}

function contents(figures) {
  const links = figures.map((f) => make("a", { href: "#" + f.id }, f.title));
  return make("nav", { "aria-label": "Figures" }, ...links);
}

function figure(f) {
  const wide = f.wide || ["cdf", "heat", "scatter", "table", "pairs"].includes(f.kind);
  const element = make("figure", { id: f.id, class: (wide ? "wide " : "") + f.kind });
  const caption = make("figcaption", {}, make("h2", {}, f.title), f.about ? make("p", {}, f.about) : "");
  element.append(caption);
  if (f.kind === "table") element.append(table(f));
  else if (f.kind === "pairs") element.append(pairs(f));
  else if (f.kind === "scatter") drawScatter(f, element);
  else draw(f, element);
  if (f.kind === "lines" || f.kind === "cdf") element.append(numbers(f));
  return element;
}

// numbers are the values of a figure as a table, made when it is opened.
function numbers(f) {
  const element = make("details", {}, make("summary", {}, "Numbers"));
  element.addEventListener("toggle", () => {
    if (element.childElementCount > 1) return;
    const first = f.kind === "cdf" ? "share" : "from";
    const columns = [{ name: first, text: true }, ...f.series.map((s) => ({ name: s.name }))];
    const count = f.kind === "cdf" ? f.at.length : f.x.n;
    const body = Array.from({ length: count }, (_, i) => [
      f.kind === "cdf" ? spellValue(f.at[i]) : spellTime(i * f.x.stepMs), ...f.series.map((s) => spellValue(s.values[i], f.unit)),
    ]);
    element.append(rowsOf(f.title, columns, body));
  });
  return element;
}

function scroller(label, ...children) {
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...children);
}

function rowsOf(title, columns, body) {
  const head = make("tr", {}, ...columns.map((c) => make("th", { scope: "col", class: c.text ? "text" : undefined }, c.name)));
  const rows = body.map((r) => make("tr", {}, ...r.map((v, i) => make(i === 0 ? "th" : "td", i === 0 ? { scope: "row", class: "text" } : {}, v))));
  return scroller(title, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)));
}

// table is sorted by the column whose heading is pressed.
function table(f) {
  const most = f.columns.map((c, i) => (c.unit === "%" ? 100 : Math.max(...f.body.map((r) => (c.text ? 0 : r[i])), 1e-9)));
  const body = make("tbody");
  const fill = (rows) => {
    body.replaceChildren(...rows.map((r) => make("tr", {}, ...r.map((v, i) => {
      const c = f.columns[i];
      if (c.text) return i === 0 ? make("th", { scope: "row", class: "text" }, v) : make("td", { class: "text" }, v);
      const bar = c.bar ? make("i", { class: "bar", style: `width:${((100 * v) / most[i]).toFixed(1)}%` }) : "";
      return make("td", {}, make("span", {}, spell(v) + (c.unit ? " " + c.unit : "")), bar);
    }))));
  };
  const heads = f.columns.map((c, i) => {
    const button = make("button", { type: "button" }, c.name);
    const head = make("th", { scope: "col", class: c.text ? "text" : undefined }, button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((h) => h.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = f.body.map((_, k) => k);
      const words = (a, b) => a.localeCompare(b, "en", { numeric: true });
      const by = (a, b) => (!c.text ? f.body[a][i] - f.body[b][i] : i === 0 ? a - b : words(f.body[a][i], f.body[b][i]));
      order.sort((a, b) => (down ? -by(a, b) : by(a, b)) || a - b);
      fill(order.map((k) => f.body[k]));
    });
    return head;
  });
  fill(f.body);
  return scroller(f.title, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
}

function pairs(f) {
  const element = make("div", { class: "groups" });
  for (const g of f.groups) {
    const list = make("dl");
    for (const [name, value] of g.pairs) list.append(make("dt", {}, name), make("dd", {}, value));
    element.append(make("section", {}, make("h3", {}, g.title), list));
  }
  return element;
}
