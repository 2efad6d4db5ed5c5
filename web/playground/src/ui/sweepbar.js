// What is swept: a setting, from where to where, in how many points.

import { byId, fleetFields, matters, named, read, sharedFields } from "../fields.js";
import { mostPoints, valuesOf } from "../state.js";
import { stops } from "./controls.js";
import { make } from "./dom.js";

/** @typedef {import("../state.js").Sweep} Sweep */

/** @param {() => import("../state.js").State} state @param {(w: Sweep) => void} change */
export function sweepBar(state, change) {
  const field = make("select", { id: "sweep-field" });
  const number = (/** @type {string} */ id) => make("input", { id, type: "text", inputmode: "decimal", maxlength: 12 });
  const inputs = { from: number("sweep-from"), to: number("sweep-to"), points: number("sweep-points") };
  const error = make("p", { class: "error", id: "sweep-error", hidden: true });
  field.addEventListener("change", () => {
    const all = stops(/** @type {import("../fields.js").Field} */ (byId.get(field.value)));
    change({ field: field.value, from: all[0], to: all[all.length - 1], points: state().sweep.points });
  });
  for (const [key, input] of Object.entries(inputs)) {
    input.addEventListener("change", () => {
      const w = { ...state().sweep, [key]: Number(input.value.trim() || NaN) };
      const fault = !Number.isFinite(w.from) || !Number.isFinite(w.to) ? "a number is accepted" : !(Number.isInteger(w.points) && w.points >= 2 && w.points <= mostPoints) ? `a whole number of points from 2 to ${mostPoints} is accepted` : w.from === w.to ? "two different ends are accepted" : "";
      error.hidden = fault === "";
      error.textContent = fault && `${input.value.trim() || "nothing"} is given; ${fault}`;
      for (const i of Object.values(inputs)) i.removeAttribute("aria-invalid"), i.removeAttribute("aria-describedby");
      if (fault) return void (input.setAttribute("aria-invalid", "true"), input.setAttribute("aria-describedby", error.id));
      change(w.from <= w.to ? w : { ...w, from: w.to, to: w.from });
    });
  }
  const idle = make("p", { role: "status" });
  const label = (/** @type {string} */ text, /** @type {HTMLElement} */ e) => make("label", { for: e.id }, text, e);
  const element = make("div", { class: "sheet", id: "sweep-bar" }, make("div", { class: "vary" }, label("Vary", field), label("from", inputs.from), label("to", inputs.to), label("points", inputs.points)), idle, error);
  const sync = () => {
    const s = state();
    const v = valuesOf(s, "a");
    const f = byId.get(s.sweep.field);
    idle.textContent = f && !matters(f, v) ? `With these settings it makes no difference.` : "";
    const able = [...fleetFields, ...sharedFields].filter((f) => f.sweep && (matters(f, v) || f.id === s.sweep.field));
    field.replaceChildren(...able.map((f) => make("option", { value: f.id }, named(f))));
    field.value = s.sweep.field;
    for (const key of /** @type {const} */ (["from", "to", "points"])) if (read(/** @type {any} */ ({ kind: "real" }), inputs[key].value) !== s.sweep[key] && inputs[key].getAttribute("aria-invalid") !== "true") inputs[key].value = String(s.sweep[key]);
  };
  return { element, sync };
}
