// The slowest requests, and what happened to one of them.

import { make, spell, spellTime } from "./dom.js";

/**
 * @typedef {{kind: "waited" | "prefill" | "transfer" | "decode" | "preempted", fromMs: number, toMs: number, text: string}} Stretch
 *
 * @typedef {object} Story
 * @property {string} name
 * @property {number} arrivalMs
 * @property {number} ttftMs NaN: no token
 * @property {number} e2eMs
 * @property {number} itlMs mean; NaN: fewer than two tokens
 * @property {number} input
 * @property {number} output
 * @property {Stretch[]} stretches
 */

const words = { waited: "waited", prefill: "prefill", transfer: "transfer", decode: "decode", preempted: "preempted" };

/** @param {{byTTFT: () => Story[], byE2E: () => Story[], byITL: () => Story[]}} of */
export function stories(of) {
  const host = make("div", {});
  const by = make("select", { id: "slowest-by" }, make("option", { value: "ttft" }, "TTFT"), make("option", { value: "e2e" }, "request latency"), make("option", { value: "itl" }, "mean ITL"));
  const fill = () => {
    const list = by.value === "ttft" ? of.byTTFT() : by.value === "e2e" ? of.byE2E() : of.byITL();
    host.replaceChildren(...list.map(story));
    if (list.length === 0) host.append(make("p", {}, "No request has ended."));
  };
  by.addEventListener("change", fill);
  fill();
  return make("section", { class: "sheet wide", id: "slowest", "aria-labelledby": "slowest-title" },
    make("div", { class: "choices" }, make("h3", { id: "slowest-title" }, "Slowest requests"), make("label", { class: "choose" }, "by ", by),
      make("ul", { class: "keys" }, .../** @type {(keyof typeof words)[]} */ (Object.keys(words)).map((k) => make("li", {}, make("span", { class: `stretch ${k}`, "aria-hidden": "true" }), words[k])))),
    host);
}

/** @param {Story} s */
function story(s) {
  const whole = Math.max(s.e2eMs, 1e-9);
  const parts = s.stretches.filter((p) => p.toMs > p.fromMs);
  const line = make("span", { class: "lane", "aria-hidden": "true" }, ...parts.map((p) => make("span", { class: `stretch ${p.kind}`, style: `left:${(100 * (p.fromMs - s.arrivalMs)) / whole}%;width:${(100 * (p.toMs - p.fromMs)) / whole}%` })));
  const head = make("summary", {}, make("span", { class: "who" }, s.name),
    make("span", { class: "what" }, `TTFT ${spellTime(s.ttftMs)}, latency ${spellTime(s.e2eMs)}, ${spell(s.input)} → ${spell(s.output)} tokens`), line);
  const steps = [
    ...s.stretches.map((p) => `${spellTime(p.fromMs)}: ${p.text}${p.toMs > p.fromMs ? `, for ${spellTime(p.toMs - p.fromMs)}` : ""}`),
    `${spellTime(s.arrivalMs + s.e2eMs)}: ended after ${spell(s.output)} tokens${Number.isFinite(s.itlMs) ? `, ${spellTime(s.itlMs)} apart on average` : ""}`,
  ];
  return make("details", { class: "story" }, head, make("ol", {}, ...steps.map((t) => make("li", {}, t))));
}
