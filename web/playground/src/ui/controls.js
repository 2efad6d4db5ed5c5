// The settings as controls, made from the list of fields. A control shows what
// the state has, tells of changes, and carries the sentence about a wrong value.

import { get, matters, read, standard } from "../fields.js";
import { make } from "./dom.js";

/**
 * @typedef {import("../fields.js").Field} Field
 * @typedef {import("../fields.js").Values} Values
 * @typedef {import("../fields.js").Group} Group
 *
 * @typedef {object} Host
 * @property {() => Values} values
 * @property {(id: string, value: import("../fields.js").Value) => void} change
 * @property {() => Values | null} beside the values of the other fleet to compare with, null: none
 * @property {(id: string) => void} reset as in the other fleet
 *
 * @typedef {{field: Field, element: HTMLElement, sync: (v: Values) => void, mark: (sentence: string) => void}} Control
 */

/** Stops of a slider. @param {Field} f @returns {number[]} */
export function stops(f) {
  const [lo, hi] = f.range ?? [0, 1];
  if (!f.log) {
    const step = f.step ?? 1;
    return Array.from({ length: Math.round((hi - lo) / step) + 1 }, (_, i) => Number((lo + i * step).toPrecision(12)));
  }
  const binary = f.kind === "whole" && Number.isInteger(Math.log2(lo)) && Number.isInteger(Math.log2(hi));
  const found = new Set([lo, hi]);
  if (binary && hi >= 128) {
    for (let x = lo; x <= hi; x *= 2) {
      found.add(x);
      if (hi > 256 && x > 1 && x * 1.5 < hi) found.add(x * 1.5);
    }
  } else {
    const near = f.kind === "whole" ? 16 : 0;
    for (let x = Math.ceil(lo); x <= Math.min(near, hi); x++) found.add(x);
    for (let power = 10 ** Math.floor(Math.log10(lo)); power <= hi; power *= 10) {
      for (const k of [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8]) {
        const x = Number((k * power).toPrecision(3));
        if (x > near && x >= lo && x <= hi && (f.kind === "real" || Number.isInteger(x))) found.add(x);
      }
    }
  }
  return [...found].sort((a, b) => a - b);
}

/** The stop nearest to a value. @param {number[]} all @param {number} x */
export function nearest(all, x) {
  let best = 0;
  all.forEach((s, i) => Math.abs(s - x) < Math.abs(all[best] - x) && (best = i));
  return best;
}

/** Controls of groups, into a host element. @param {Group[]} groups @param {Host} host @param {Record<string, HTMLElement>} extras after a field @returns {{elements: HTMLElement[], sync: () => void, mark: (faults: Map<string, string>) => void}} */
export function controls(groups, host, extras = {}) {
  /** @type {Control[]} */
  const all = [];
  /** @type {{element: HTMLElement, own: Control[], more: boolean, note: HTMLElement | null}[]} */
  const made = groups.map((g) => {
    const own = g.fields.map((f) => control(f, host));
    all.push(...own);
    const body = own.flatMap((c) => (extras[c.field.id] ? [c.element, extras[c.field.id]] : [c.element]));
    const note = g.more ? make("span", { class: "note" }) : null;
    const element = g.more
      ? make("details", { class: "group", id: `group-${g.id}` }, make("summary", {}, g.title, note), ...body)
      : make("section", { class: "group", id: `group-${g.id}`, "aria-labelledby": `title-${g.id}` }, make("h2", { id: `title-${g.id}` }, g.title), ...body);
    return { element, own, more: g.more ?? false, note };
  });
  const sync = () => {
    const v = host.values();
    const other = host.beside();
    for (const c of all) {
      const shown = matters(c.field, v);
      c.element.hidden = !shown;
      if (shown) c.sync(v);
      const differs = shown && other !== null && (!matters(c.field, other) || get(other, c.field.id) !== get(v, c.field.id));
      c.element.classList.toggle("differs", differs);
    }
    for (const g of made) {
      if (!g.more) continue;
      const relevant = g.own.filter((c) => matters(c.field, v));
      g.element.hidden = relevant.length === 0;
      const set = relevant.filter((c) => get(v, c.field.id) !== standard(c.field, v)).length;
      if (g.note) g.note.textContent = set > 0 ? `${set} set` : "";
    }
  };
  const mark = (/** @type {Map<string, string>} */ faults) => {
    for (const c of all) c.mark(faults.get(c.field.id) ?? "");
    for (const g of made) if (g.more && g.own.some((c) => faults.has(c.field.id))) g.element.setAttribute("open", "");
  };
  sync();
  return { elements: made.map((g) => g.element), sync, mark };
}

/** @param {Field} f @param {Host} host @returns {Control} */
function control(f, host) {
  const error = make("p", { class: "error", id: `error-${f.id}`, hidden: true });
  const hint = f.help ? make("p", { class: "hint", id: `hint-${f.id}` }, f.help) : null;
  const back = make("button", { type: "button", class: "other", onclick: () => host.reset(f.id) });
  const part = f.kind === "toggle" ? toggle(f, host) : f.kind === "choice" ? (f.radio ? radios(f, host) : select(f, host)) : number(f, host);
  const element = make("div", { class: `field ${part.style}`, "data-field": f.id }, ...part.parts, hint, back, error);
  const describe = () => {
    const ids = [hint?.id, error.hidden ? undefined : error.id].filter((id) => id);
    for (const i of part.inputs) ids.length ? i.setAttribute("aria-describedby", ids.join(" ")) : i.removeAttribute("aria-describedby");
  };
  describe();
  return {
    field: f,
    element,
    sync: (v) => {
      part.show(get(v, f.id), v);
      const other = host.beside();
      const x = other && matters(f, other) ? get(other, f.id) : null;
      back.hidden = x === null || x === get(v, f.id);
      back.textContent = `A: ${x === "" ? (f.unset ?? "none") : f.choices ? (f.choices.find(([c]) => c === x)?.[1] ?? x) : f.kind === "toggle" ? (x ? "on" : "off") : x}`;
      back.setAttribute("aria-label", `${f.label}: as in ${back.textContent}`);
    },
    mark: (sentence) => {
      error.hidden = sentence === "";
      error.textContent = sentence;
      element.classList.toggle("wrong", sentence !== "");
      for (const i of part.inputs) sentence ? i.setAttribute("aria-invalid", "true") : i.removeAttribute("aria-invalid");
      describe();
    },
  };
}

/**
 * @typedef {{style: string, parts: (Node | null)[], inputs: HTMLElement[], show: (x: import("../fields.js").Value, v: Values) => void}} Part
 */

/** @param {Field} f @param {Host} host @returns {Part} */
function number(f, host) {
  const input = make("input", { id: `field-${f.id}`, type: "text", inputmode: f.kind === "text" ? undefined : f.kind === "whole" ? "numeric" : "decimal", autocomplete: "off", spellcheck: "false", maxlength: 40 });
  const unit = f.unit ? make("span", { class: "unit" }, f.unit) : null;
  const label = make("label", { for: input.id }, f.label);
  if (f.unit) input.setAttribute("aria-label", `${f.label}, ${f.unit}`);
  input.addEventListener("input", () => host.change(f.id, read(f, input.value)));
  const all = f.range ? stops(f) : [];
  const slider = f.range ? make("input", { type: "range", min: 0, max: all.length - 1, step: 1, "aria-label": `${f.label}, slider` }) : null;
  slider?.addEventListener("input", () => {
    const x = all[Number(slider.value)];
    input.value = String(x);
    slider.setAttribute("aria-valuetext", `${x}${f.unit ? ` ${f.unit}` : ""}`);
    host.change(f.id, x);
  });
  return {
    style: slider ? "number slid" : "number",
    parts: [label, slider, make("span", { class: "input", style: f.unit ? `--unit:${f.unit.length}ch` : undefined }, input, unit)],
    inputs: [input],
    show: (x) => {
      input.placeholder = x === "" ? (f.unset ?? "") : "";
      if (read(f, input.value) !== x) input.value = String(x);
      if (slider && typeof x === "number") slider.value = String(nearest(all, x));
      if (slider && x === "") slider.value = String(all.length - 1);
      slider?.setAttribute("aria-valuetext", x === "" ? (f.unset ?? "none") : `${x}${f.unit ? ` ${f.unit}` : ""}`);
      slider?.classList.toggle("unset", typeof x !== "number");
    },
  };
}

/** @param {Field} f @param {Host} host @returns {Part} */
function select(f, host) {
  const input = make("select", { id: `field-${f.id}` }, ...(f.choices ?? []).map(([value, label]) => make("option", { value }, label)));
  input.addEventListener("change", () => host.change(f.id, input.value));
  return { style: "choice", parts: [make("label", { for: input.id }, f.label), input], inputs: [input], show: (x) => (input.value = String(x)) };
}

/** @param {Field} f @param {Host} host @returns {Part} */
function radios(f, host) {
  const inputs = (f.choices ?? []).map(([value]) => make("input", { type: "radio", name: `field-${f.id}`, value, id: `field-${f.id}-${value}`, onchange: () => host.change(f.id, value) }));
  const labels = (f.choices ?? []).map(([, label], i) => make("label", { for: inputs[i].id }, label));
  const set = make("fieldset", { class: "segments" }, make("legend", {}, f.label), ...inputs.flatMap((input, i) => [input, labels[i]]));
  return { style: "radio", parts: [set], inputs: [set], show: (x) => inputs.forEach((i) => (i.checked = i.value === x)) };
}

/** @param {Field} f @param {Host} host @returns {Part} */
function toggle(f, host) {
  const input = make("input", { id: `field-${f.id}`, type: "checkbox", onchange: () => host.change(f.id, input.checked) });
  return { style: "toggle", parts: [make("label", { for: input.id }, f.label), input], inputs: [input], show: (x) => (input.checked = x === true) };
}
