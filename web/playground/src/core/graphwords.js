// @ts-check
// What is wrong with traces of agents, Dynamo's records and Weka's objects, in the
// sentences of the command line. The words between braces stand for what the
// fault says; codes are those of docs/frames.md.

import { sentenceFloat } from './spell.js';
import { fieldOf, foundText } from './tracewords.js';

/** @typedef {import('./msgpack.js').Pairs} Pairs */

const POSITIVE = 'found 0, want a positive integer';
const MOST = 'found {found}, want at most {limit}';

/** By agentic.Code. */
export const GRAPH = [
  '',
  'the trace has more than {limit} lines, which is the most',
  'the trace has more than {limit} requests, which is the most',
  'the prompts have more than {limit} hash ids, which is the most',
  'the trace has more than {limit} output token ids, which is the most',
  'the trace has more than {limit} dependencies, which is the most',
  'the names have more than {limit} bytes together, which is the most',
  'field "{field}" is blank, want a name',
  'field "request_id": found {name} again, want every request once',
  `field "input_length": ${POSITIVE}`,
  `field "input_length": ${MOST}`,
  `field "output_length": ${MOST}`,
  'field "output_token_ids": found {found} ids, want as many as output_length says, {limit}',
  'field "hash_ids": found {found} ids, want exactly those that input_length needs, {limit}',
  'field "{field}": found {ms}, want a number of milliseconds from 0',
  'field "dependencies.trigger": found "dispatch" of {name} with another relation than "spawn", want "completion"',
  'found a header only, want at least one request after it',
  'request {name} waits for {other}, which is not in the trace; want a request of the trace',
  'request {name} waits for itself; want another request',
  'request {name} waits for {other}, which is in another play; want a request of the same play',
  'field "source_play_ordinal": the requests of play {name} differ; want one number for all of them, or none',
  'field "source_play_ordinal": play {name} has none, but others do; want one for every play or for none',
  'field "source_play_ordinal": found {found} where {limit} comes next; want the numbers from 0, each once',
  '{found} requests wait for each other for ever, {name} among them; want dependencies without a cycle',
  "a time of the request is too late to be a number once the trace's first is 0 and the speed-up is applied; want earlier times or a greater speed-up",
];

/** By dynamo.Code. */
const RECORD = [
  '',
  'field "request" is missing, want the request that has ended',
  'field "{field}" is blank, want a name',
  'field "request.output_tokens" is missing, want an integer from 0',
  `field "request.output_tokens": ${MOST}`,
  'field "request.total_time_ms": found {ms}, want a number of milliseconds from 0',
  `field "request.replay.trace_block_size": ${POSITIVE}`,
  `field "request.replay.trace_block_size": ${MOST}`,
  'field "request.replay.trace_block_size": found {found}, but {limit} before; want one block size in all of the trace',
  'field "agent_context": found requests with and without one; want it on all requests of a trace or on none',
  'field "request.request_id": found {name} again, want every request once',
  'the trace has more than {limit} requests, which is the most',
  'the prompts have more than {limit} hashes, which is the most',
  'the trace has more than {limit} dependencies, which is the most',
  'the names have more than {limit} bytes together, which is the most',
  'found no request_end record, want at least one',
  'field "agent_context.parent_session_id": found {other} for session {name}, which has another parent; want one parent a session',
  'field "agent_context.parent_session_id": found {other} for session {name}, but no request of it; want a session of the trace',
  'field "tool.claude.execution_mode": found {other} for tool call {name}, want "blocking" or "background"',
  'tool call {name} names request {other}, which is not in the trace; want a request of the trace',
  'request {name} waits for {other}, which is not in the trace; want a request of the trace',
  'request {name} waits for {other}, which began later; want a request that began before',
  'tool call {name} names request {other} of another session than its own; want one of its session',
  "tool call {name} calls session {other}, whose parent is another session than the call's; want them to agree",
  'tool call {name} calls session {other}, which another call has called; want one call a session',
  'request {name} began {-ms} ms too early to have waited for {other}; want requests of a session one after the other',
];
const PLAIN_RECORD = 26;

/** Of a Dynamo record without sessions, by workload.Code. @type {Record<number, string>} */
const RECORD_ROW = {
  6: 'field "request.replay.input_length": found {found}, want at most {limit}, which the input_sequence_hashes cover',
  7: `field "request.replay.input_length": ${POSITIVE}`,
  8: `field "request.replay.input_length": ${MOST}`,
  20: 'the request begins too late to be a number after the speed-up; want a greater speed-up',
};
const RECORD_ROW_ELSE = 'the prompts have more than {limit} different hashes, which is the most';

/** Of one with sessions, where it is another than that of a graph, by agentic.Code. @type {Record<number, string>} */
const RECORD_NODE = {
  9: `field "request.replay.input_length": ${POSITIVE}`,
  10: `field "request.replay.input_length": ${MOST}`,
  13: 'field "request.replay.input_sequence_hashes": found {found} hashes, want exactly those that input_length needs, {limit}',
  15: 'field "request.replay.dependencies.trigger": found "dispatch" of {name} with another relation than "spawn", want "completion"',
};
const BLANK = 7;
const SESSION_ID = 2; // trace.Field

/** By weka.Code. */
const OBJECT = [
  '',
  'field "{field}" is blank, want a name',
  `field "block_size": ${POSITIVE}`,
  `field "block_size": ${MOST}`,
  'field "block_size": found {found}, but {limit} before; want one block size in all of the trace',
  'field "{field}": found {found64}, want a number of seconds from 0',
  'field "requests.model": found {name}, want one of those that models lists',
  `field "requests.in": ${POSITIVE}`,
  `field "{field}": ${MOST}`,
  'field "requests.duration_ms": found {found}, want a whole number of milliseconds from 0',
  'subagent {name} was waited for, but has no requests; want at least one, or the status async_launched',
  'subagent {name} comes before the first request that could have called it; want that request before it',
  'found no request but those of subagents, want at least one',
  'the trace has more than {limit} requests, which is the most',
  'the prompts have more than {limit} hashes, which is the most',
  'the names have more than {limit} bytes together, which is the most',
  '',
  'the request begins at {found64} s, before its subagent at {limit64} s; want times that count from the subagent (--weka-nested-timestamp-basis relative), or later ones',
  'the request begins at {found64} s, want less',
];

/** Of the graph of Weka objects, where it is another than that of a graph. @type {Record<number, string>} */
const OBJECT_GRAPH = {
  23: 'the times let {found} requests wait for each other for ever, among them {name}; want a subagent to begin after the request before it',
  24: 'the requests begin too late to be numbers after the speed-up; want a greater speed-up',
};

/** By intake.Code: what is wrong with a trace as a whole, or with the options for it. */
const TRACE = [
  '',
  'which has no times of its own in subagents (--weka-nested-timestamp-basis); want a trace in the format weka',
  'which has no start times; want a cap on the sessions under way (--replay-concurrency)',
  'which has no plays for lanes (--agentic-lanes) to take up; want a trace of agents: agentic_mooncake, weka, or dynamo with an agent_context',
  'whose requests wait for each other and not for room under a cap (--replay-concurrency); want lanes (--agentic-lanes) or neither',
  'whose requests name models of their own; want the name of the model that serves them all (--execution-model)',
  'the requests were traced with a block size of {found} tokens, but {limit} is asked for (--trace-block-size); want the same, or leave it out',
  'whose requests are named after their file; want a name that ends in .json (one object) or .jsonl (a line for each), or a directory of such files',
  `field "block_size": ${POSITIVE}`,
  `field "block_size": ${MOST}`,
  'field "source.format" is blank, want a name',
  'field "source.digest" is blank, want a text',
  'found a header only, want at least one request after it',
  'found only requests without tokens, as those that failed have, want at least one with tokens',
  'found no object, want at least one',
  'the object is longer than {limit} bytes; want smaller ones, as lines of a .jsonl file or as files of a directory',
];

/** Puts what a fault says in the place of the words between braces. @param {string} text @param {Pairs} p @param {string} [prefix] of its keys */
function filled(text, p, prefix = '') {
  return text.replace(/\{(-?)(\w+)\}/g, (_, minus, key) => {
    const x = p[prefix + key];
    if (key === 'field') return fieldOf(Number(x)).name;
    if (x instanceof Uint8Array) return foundText(x);
    return key === 'ms' || key.endsWith('64') ? sentenceFloat(minus === '-' ? -Number(x) : Number(x)) : String(x);
  });
}

/** @param {Pairs} p a refusal BadGraph */
export const graphSentence = (p) => filled(GRAPH[Number(p.code)], p);

/** @param {Pairs} p a refusal BadRecord */
export function recordSentence(p) {
  const code = Number(p.code);
  if (code < PLAIN_RECORD) return filled(RECORD[code], p);
  if (code === PLAIN_RECORD) return filled(RECORD_ROW[Number(p['row.code'])] ?? RECORD_ROW_ELSE, p, 'row.');
  const inner = Number(p['graph.code']);
  if (inner === BLANK) return Number(p['graph.field']) === SESSION_ID ? 'field "agent_context.session_id" is blank, want a name' : 'field "request.model" is blank, want a name, or leave it out';
  return filled(RECORD_NODE[inner] ?? GRAPH[inner], p, 'graph.');
}

/** Which entry of a Weka object: outer and inner are -1 for none. @param {Pairs} p */
export function entryOf(p) {
  const [outer, inner] = [Number(p.outer ?? -1), Number(p.inner ?? -1)];
  if (outer < 0) return '';
  return inner < 0 ? `requests[${outer}]: ` : `requests[${outer}].requests[${inner}]: `;
}

/** @param {Pairs} p a refusal BadObject */
export function objectSentence(p) {
  const code = Number(p.code);
  const inner = Number(p['graph.code']);
  return entryOf(p) + (OBJECT[code] ? filled(OBJECT[code], p) : filled(OBJECT_GRAPH[inner] ?? GRAPH[inner], p, 'graph.'));
}

/** @param {Pairs} p a refusal BadTrace @param {string} format */
export function traceSentence(p, format) {
  const code = Number(p.code);
  const text = filled(TRACE[code], p);
  return /^(which|whose) /.test(text) ? `is a trace in the format ${format}, ${text}` : text;
}
