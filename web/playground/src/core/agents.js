// @ts-check
// What the report and the lines of requests say of a graph of agents.

import { jsonText, pythonFloat } from './spell.js';
import { STATUS_WORDS } from './words.js';

/** @typedef {import('./types.d.ts').Graph} Graph */
/** @typedef {import('./types.d.ts').Summary} Summary */

const utf8 = new TextDecoder();

/** Where texts that stand one after the other end. @param {Int32Array} lengths in bytes */
export function endsOf(lengths) {
  const ends = lengths.slice();
  for (let i = 1; i < ends.length; i++) ends[i] += ends[i - 1];
  return ends;
}

/** One of texts that stand one after the other. @param {{text: Uint8Array, ends: Int32Array}} names @param {number} i */
export function nameAt({ text, ends }, i) {
  return utf8.decode(text.subarray(i === 0 ? 0 : ends[i - 1], ends[i]));
}

/** Values that are spelt already, at a depth, as json.dumps with indent=2 does. @param {string} open @param {string} end @param {string[]} items @param {number} depth */
function enclosed(open, end, items, depth) {
  if (items.length === 0) return open + end;
  const indent = `\n${'  '.repeat(depth + 1)}`;
  return open + indent + items.join(`,${indent}`) + indent.slice(0, -2) + end;
}

/** @param {[string, string][]} entries @param {number} depth */
const object = (entries, depth) => enclosed('{', '}', entries.map(([k, v]) => `"${k}": ${v}`), depth);

/** @param {Uint8Array} bytes */
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');

/** Keys of a report with their values spelt. @param {Summary} s @param {Graph} g @param {string} target the model its requests are run on @returns {[string, string][]} */
export function agentEntries(s, g, target) {
  const n = s.numbers;
  const [plays, completed] = [n['agents.plays'], n['agents.completed']];
  const latency = s.distributions['agents.latency_ms'];
  const models = (/** @type {number} */ depth) => enclosed('[', ']', Array.from(g.models.ends, (_, i) => jsonText(nameAt(g.models, i))), depth);
  /** @type {[string, string][]} */
  const e = [
    ['total_trajectories', String(plays)], ['completed_trajectories', String(completed)], ['incomplete_trajectories', String(plays - completed)],
    ...Object.entries(latency).map(([name, x]) => /** @type {[string, string]} */ ([`${name}_trajectory_e2e_latency_ms`, pythonFloat(x)])),
    ['p50_trajectory_e2e_latency_ms', pythonFloat(latency.median)],
    ['agentic_lifecycle_event_count', String(n['agents.events'])], ['agentic_lifecycle_digest', `"${hex(g.lifecycle)}"`],
    ['agentic_graph', object([
      ['block_size', String(g.blockSize)], ['graph_digest', `"${hex(g.digest)}"`], ['node_count', String(g.play.length)], ['play_count', String(g.root.length)],
      ['source', object([['digest', jsonText(g.sourceDigest)], ['format', jsonText(g.sourceFormat)]], 2)], ['source_models', models(2)],
    ], 1)],
    ['agentic_model_projection', object([['policy', '"project_to_configured_target"'], ['source_models', models(2)], ['target_model', jsonText(target)]], 1)],
    ['agentic_play_outcomes', enclosed('[', ']', Array.from(g.root, (_, i) => outcome(g, i)), 1)],
  ];
  if (g.nestedBasis !== '') e.push(['weka_nested_timestamp_basis', jsonText(g.nestedBasis)]);
  return e;
}

/** @param {Graph} g @param {number} i play */
function outcome(g, i) {
  const o = g.outcomes;
  /** @type {[string, string][]} */
  const e = [];
  if (!Number.isNaN(o.terminal_ms[i])) e.push(['causal_terminal_ms', pythonFloat(o.terminal_ms[i])]);
  if (o.failed[i] !== 0) e.push(['failure_request_id', jsonText(nameAt(g.requests, o.failed_node[i]))], ['failure_status', `"${STATUS_WORDS[o.status[i]]}"`]);
  e.push(['play_id', jsonText(nameAt(g.plays, i))]);
  if (o.settled[i] !== 0) e.push(['settled_at_ms', pythonFloat(o.settled_ms[i])]);
  e.push(['status', o.settled[i] === 0 ? '"incomplete"' : o.failed[i] !== 0 ? '"failed"' : '"completed"']);
  return object(e, 2);
}

/** How the line of a request of a graph begins. @param {Graph} g @param {string} conversation @param {number} turn */
export function nodeStart(g, conversation, turn) {
  const request = jsonText(nameAt(g.requests, turn));
  const play = g.play[turn];
  const [playID, session, lane, root, parent] = [jsonText(nameAt(g.plays, play)), jsonText(conversation), g.outcomes.lane[play], g.root[play], g.parent[turn]];
  return (
    `"request_id":${request},"play_id":${playID},"session_id":${session},"turn_index":null,"agentic":{"request_id":${request},"play_id":${playID},"conversation_id":${session}` +
    (lane >= 0 ? `,"lane_id":"lane:${lane}"` : '') + (root >= 0 ? `,"root_id":${jsonText(nameAt(g.requests, root))}` : '') +
    (parent >= 0 ? `,"parent_id":${jsonText(nameAt(g.requests, parent))}` : '') + '}'
  );
}
