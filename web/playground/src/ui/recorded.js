// What a result recorded, as the timeline and the stories take it.

import { latencies, ordinals, sessionID } from "../core/report.js";
import { spell, spellTime } from "./dom.js";
import { timeline } from "./passes.js";

/**
 * @typedef {import("../core/types.d.ts").Result} Result
 * @typedef {import("../core/types.d.ts").Recording} Recording
 * @typedef {import("./story.js").Story} Story
 * @typedef {import("./story.js").Stretch} Stretch
 */

/** The passes of each rank. @param {Recording} r @returns {HTMLElement | null} */
export function timelineOf(r) {
  if (r.ranks.length === 0) return null;
  const note = Number.isFinite(r.passes.untilMs) ? `Kept up to ${spellTime(r.passes.untilMs)}.` : "";
  return timeline({ names: r.ranks.map((k) => k.name), endMs: r.endMs, note, of: (i) => r.passes.of[i] });
}

/** Stories of the slowest requests, as they are asked for. @param {Result} r @param {Recording} recording */
export function storiesOf(r, recording) {
  const number = ordinals(r.outline);
  const all = (/** @type {"ttft" | "itl" | "e2e"} */ by) => recording.stories[by].map((s) => storyOf(r, recording, s, number[s.turn]));
  return { byTTFT: () => all("ttft"), byE2E: () => all("e2e"), byITL: () => all("itl") };
}

/** @param {Result} r @param {Recording} recording @param {import("../core/types.d.ts").Story} s @param {number} number @returns {Story} */
function storyOf(r, recording, s, number) {
  const c = r.records;
  const i = s.record;
  const l = latencies(c, i);
  const arrival = c.arrival_ms[i];
  const end = arrival + l.e2e_latency_ms;
  const session = r.outline.session[s.turn];
  const name = `Request ${number}${r.named ? `, session ${sessionID(r.outline, session)}, turn ${r.outline.index[s.turn] + 1}` : r.format === "" ? "" : `, line ${r.outline.line[session]}`}`;
  return {
    name, arrivalMs: arrival, ttftMs: l.ttft_ms, e2eMs: l.e2e_latency_ms, itlMs: l.itl_ms, input: c.input_length[i], output: c.output_length[i],
    stretches: stretches(s.steps, end, (rank) => recording.ranks[rank]?.name ?? "a worker", c.input_length[i]),
  };
}

/** What a request was doing between its steps. @param {import("../core/types.d.ts").Story["steps"]} steps @param {number} end @param {(rank: number) => string} named @param {number} input @returns {Stretch[]} */
function stretches(steps, end, named, input) {
  /** @type {Stretch[]} */
  const out = [];
  let given = false; // its first token
  steps.forEach((s, k) => {
    if (s.kind === "ended") return;
    const toMs = steps[k + 1]?.atMs ?? end;
    /** @type {[Stretch["kind"], string]} */
    const [kind, text] = {
      arrived: /** @type {[Stretch["kind"], string]} */ (["waited", "arrived and waited"]),
      admitted: given ? /** @type {[Stretch["kind"], string]} */ (["prefill", `admitted again by ${named(s.rank)}`]) : /** @type {[Stretch["kind"], string]} */ (["prefill", `admitted by ${named(s.rank)} with ${spell(s.tokens)} of ${spell(input)} prompt tokens in its cache${s.hostTokens > 0 ? `, ${spell(s.hostTokens)} of them in host memory` : ""}; prefill`]),
      preempted: /** @type {[Stretch["kind"], string]} */ (["preempted", "preempted; waited again"]),
      held: /** @type {[Stretch["kind"], string]} */ (["waited", "prompt computed; held until there was room to decode"]),
      transferring: /** @type {[Stretch["kind"], string]} */ (["transfer", `handed over to ${named(s.rank)}: ${spell(s.tokens)} tokens`]),
      activated: /** @type {[Stretch["kind"], string]} */ (["waited", `there; waited for ${named(s.rank)}`]),
      first_token: /** @type {[Stretch["kind"], string]} */ (["decode", "first token; decoded"]),
    }[s.kind];
    if (s.kind === "first_token") given = true;
    out.push({ kind: kind === "prefill" && given ? "decode" : kind, fromMs: s.atMs, toMs, text });
  });
  return out;
}
