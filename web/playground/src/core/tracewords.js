// @ts-check
// What is wrong with a trace, in the sentences of the command line: codes and
// fields are those of docs/frames.md.

import { sentenceFloat } from './spell.js';
import { entryOf } from './graphwords.js';
import { visible } from './wording.js';

/** @typedef {import('./msgpack.js').Pairs} Pairs */

const SCHEMA = 12; // trace.Field
const OLDER_AGENTS =
  'found a request, want the header {"schema":"dynamo.agentic_mooncake","version":2,"block_size":...,"hash_id_scope":"local","source":{"format":...,"digest":...}}; ' +
  'without one this is version 1 of the format, whose requests wait with "wait_for" and "delay" instead of "dependencies"';

/** Codes of lines. */
export const Line = Object.freeze({
  CutOff: 1, NotObject: 2, ByteOrderMark: 3, WantKey: 4, WantColon: 5, WantCommaOrBrace: 6, WantCommaOrClose: 7, WantValue: 8, BadNumber: 9, BadEscape: 10,
  LoneSurrogate: 11, ControlByte: 12, BadUTF8: 13, Trailing: 14, LineTooLong: 15, Duplicate: 16, Missing: 17, WrongType: 18, OutOfRange: 19, WrongWord: 20,
  WrongCells: 21, OpenQuote: 22,
});

/** Codes of rows. */
export const Row = Object.freeze({
  TooManyLines: 1, TooManyRows: 2, TooMuchText: 3, TooManyIDs: 4, TooManyOutputIDs: 5, InputOverCapacity: 6, InputZero: 7, InputTooLong: 8, OutputTooLong: 9,
  ListMismatch: 10, OutputIDsMismatch: 11, FirstTurnDelay: 12, NegativeDelay: 13, TimestampBackward: 14, TimestampTooFar: 15, NoTimestampBefore: 16, Empty: 17,
  NoStart: 18, NegativeStart: 19, StartTooLate: 20, DelayTooLong: 21, TalkTooLong: 22,
});

/** Longest line that is read, and longest object of a Weka trace, in bytes. */
const MAX_LINE = 64 << 20;
const MAX_OBJECT = 2 ** 30;

/**
 * Fields by number from a first one: their names, and after a bar what they
 * accept: a letter of ACCEPTS, or nothing for a text.
 * @type {[number, string[]][]}
 */
const FIELDS = [
  [1, ['request_id', 'session_id', 'input_length=input_tokens|p', 'output_length=output_tokens|n', 'output_token_ids|4', 'hash_ids|8', 'timestamp=created_time|t',
    'delay=delay_ms|m', 'priority|i', 'strict_priority|u', 'policy_class']],
  [12, ['schema|A', 'version|2', 'block_size|p', 'hash_id_scope|L', 'source|S', 'source.format', 'source.digest', 'play_id', 'source_play_ordinal|n', 'model',
    'not_before_ms|m', 'recorded_api_time_ms|m', 'dependencies|D', 'dependencies.request_id', 'dependencies.trigger|T', 'dependencies.relation|R', 'dependencies.delay_ms|m']],
  [40, ['num_turns|n', 'input_prompt_length|p', 'assistant_response_length|N', 'tool_call_output_length|N', 'tool_call_latency|s', 'final_assistant_response_length|n']],
  [60, ['event|o', 'schema|E', 'event_type|e', 'event_time_unix_ms|w', 'agent_context|o', 'agent_context.session_id', 'agent_context.parent_session_id', 'request|o',
    'request.request_id', 'request.output_tokens|n', 'request.request_received_ms|w', 'request.total_time_ms|m', 'request.model', 'request.replay|o',
    'request.replay.trace_block_size|p', 'request.replay.input_length|p', 'request.replay.input_sequence_hashes|8', 'request.replay.dependencies|D',
    'request.replay.dependencies.request_id', 'request.replay.dependencies.trigger|T', 'request.replay.dependencies.relation|R', 'tool|o', 'tool.tool_call_id',
    'tool.tool_class', 'tool.started_at_unix_ms|w', 'tool.ended_at_unix_ms|w', 'tool.claude|o', 'tool.claude.source_request_id', 'tool.claude.consumer_request_id',
    'tool.claude.child_session_id', 'tool.claude.execution_mode']],
  [100, ['id', 'models|x', 'requests|q', 'requests.type|y', 'requests.t|z', 'requests.model', 'requests.in|p', 'requests.out|n', 'requests.hash_ids|8', 'requests.api_time|z',
    'requests.agent_id', 'requests.subagent_type', 'requests.status|c', 'requests.duration_ms|w', 'requests.requests|q']],
  [120, ['TIMESTAMP', 'ContextTokens|n', 'GeneratedTokens|n', 'Timestamp', 'Session ID', 'Elapsed time', 'Request tokens|n', 'Response tokens|n']],
];

/** @type {Record<string, string>} */
const ACCEPTS = {
  '': 'a string', p: 'a positive integer', n: 'an integer from 0', N: 'a list of integers from 0', s: 'a list of numbers of seconds from 0', z: 'a number of seconds from 0',
  E: '"dynamo.request.trace.v1"', e: '"request_end", "tool_end", "tool_error", "request_payload" or "tool_start"', w: 'a whole number of milliseconds from 0', o: 'an object',
  m: 'a number of milliseconds from 0', t: 'a number of milliseconds', 8: 'a list of integers from 0 to 18446744073709551615', 4: 'a list of integers from 0 to 4294967295',
  D: 'a list of objects, each a dependency', A: '"dynamo.agentic_mooncake"', 2: '2', L: '"local"', S: 'an object with a format and a digest', T: '"dispatch" or "completion"',
  R: '"sequence", "spawn", "join" or "replay_barrier"', i: 'an integer from -2147483648 to 2147483647', u: 'an integer from 0 to 4294967295', x: 'a list of strings',
  q: 'a list of objects, each a request', y: '"n" or "s", or "subagent" where it is not in one', c: '"completed" or "async_launched"',
};

/** @param {number} n @returns {{name: string, alias: string, accepts: string, letter: string}} */
export function fieldOf(n) {
  for (const [first, names] of FIELDS) {
    const text = names[n - first];
    if (text === undefined) continue;
    const [both, letter = ''] = text.split('|');
    const [name, alias = ''] = both.split('=');
    return { name, alias, accepts: ACCEPTS[letter], letter };
  }
  return { name: '', alias: '', accepts: ACCEPTS[''], letter: '' };
}

/** Which numbers a field takes, where one is out of range. @param {number} n */
function inRange(n) {
  const f = fieldOf(n);
  if (f.name === 'input_length') return 'a positive integer of at most 2147483647';
  if (f.name === 'output_length') return 'an integer from 0 to 2147483647';
  return 'tmsz'.includes(f.letter) && f.letter !== '' ? 'a number that fits a 64-bit float' : f.accepts;
}

const MOST_FOUND = 40; // bytes of the trace that a sentence repeats

/** What was found, as it stands in the trace but for what would break a line. @param {Uint8Array} bytes */
export function foundText(bytes) {
  if (bytes.length <= MOST_FOUND) return plainText(bytes);
  let n = MOST_FOUND;
  while (n > MOST_FOUND - 4 && (bytes[n] & 0xc0) === 0x80) n--;
  return plainText(bytes.subarray(0, n)) + '...';
}

const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @param {Uint8Array} bytes */
function plainText(bytes) {
  let out = '';
  for (let i = 0; i < bytes.length; ) {
    const n = width(bytes, i);
    if (n === 0) out += '\\x' + bytes[i++].toString(16).padStart(2, '0');
    else {
      out += escape(strict.decode(bytes.subarray(i, i + n)));
      i += n;
    }
  }
  return out;
}

/** @type {Record<string, string>} */
const SHORT = { '\x07': '\\a', '\b': '\\b', '\f': '\\f', '\n': '\\n', '\r': '\\r', '\t': '\\t', '\v': '\\v' };
/** @param {string} c */
const escape = (c) => SHORT[c] ?? visible(c);

/** How many bytes the character at i has, 0 if it is none. @param {Uint8Array} bytes @param {number} i */
function width(bytes, i) {
  const b = bytes[i];
  const n = b < 0x80 ? 1 : b < 0xc2 ? 0 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf5 ? 4 : 0;
  if (n === 0 || i + n > bytes.length) return 0;
  try {
    strict.decode(bytes.subarray(i, i + n));
    return n;
  } catch {
    return 0;
  }
}

/**
 * What is wrong with a line, or an object, by itself.
 * @param {Pairs} p a refusal BadLine
 * @param {string} format
 */
export function lineSentence(p, format) {
  const [code, field, key, start, end] = ['code', 'field', 'key', 'start', 'end'].map((k) => Number(p[k] ?? 0));
  const line = p.text instanceof Uint8Array ? p.text : new Uint8Array();
  if (format === 'azure' || format === 'burstgpt') return cellSentence(code, field, line.subarray(start, end));
  if (format === 'agentic_mooncake' && code === Line.Missing && field === SCHEMA && new TextDecoder().decode(line).includes('"request_id"')) return OLDER_AGENTS;
  const whole = code === Line.NotObject || code === Line.ByteOrderMark || code === Line.Trailing;
  const where = whole ? '' : entryOf(p);
  if (p.single === true && code === Line.Trailing) {
    return `found ${foundText(line.subarray(start))} after the object, want one object in a file whose name ends in .json; a file of several, a line for each, ends in .jsonl`;
  }
  if (p.single === true && code === Line.CutOff) return `${where}the file ends too early, want a complete JSON object`;
  return where + bareLine(line, code, field, key, start, end, format);
}

/** @param {Uint8Array} line @param {number} code @param {number} field @param {number} key @param {number} start @param {number} end @param {string} format */
function bareLine(line, code, field, key, start, end, format) {
  const value = () => foundText(line.subarray(start, end));
  const named = () => `field "${nameIn(line, field, key)}"`;
  switch (code) {
    case Line.LineTooLong:
      return `the line is longer than ${format === 'weka' ? MAX_OBJECT : MAX_LINE} bytes; want one JSON object per line`;
    case Line.ByteOrderMark:
      return 'the line begins with a byte order mark; want UTF-8 without one';
    case Line.NotObject:
      return `found ${foundText(line.subarray(start))}, want a JSON object`;
    case Line.Missing:
      return `${named()} is missing, want ${fieldOf(field).accepts}`;
    case Line.Duplicate: {
      const f = fieldOf(field);
      const both = f.alias === '' ? '' : ` ("${f.name}" and "${f.alias}" are one field)`;
      return `${named()} is given twice${both}, want it once`;
    }
    case Line.WrongType:
    case Line.WrongWord:
      return `${named()}: found ${value()}, want ${fieldOf(field).accepts}`;
    case Line.OutOfRange:
      return `${named()}: found ${value()}, want ${inRange(field)}`;
  }
  const column = `column ${start + 1}`; // in bytes
  const rule = syntax(code, field, line, start, end);
  return field !== 0 ? `${named()} (${column}): ${rule}` : `${column}: ${rule}`;
}

/** The field as the line names it. @param {Uint8Array} line @param {number} field @param {number} key */
function nameIn(line, field, key) {
  const { name, alias } = fieldOf(field);
  const other = `"${alias}"`;
  const there = alias !== '' && String.fromCharCode(...line.subarray(key, key + other.length)) === other;
  return there ? alias : name;
}

/** Which rule of JSON the line breaks. @param {number} code @param {number} field @param {Uint8Array} line @param {number} start @param {number} end */
function syntax(code, field, line, start, end) {
  const value = foundText(line.subarray(start, end));
  const token = foundText(word(line.subarray(start)));
  switch (code) {
    case Line.CutOff:
      return 'the line ends too early, want a complete JSON object';
    case Line.Trailing:
      return `found ${foundText(line.subarray(start))} after the row, want one JSON object per line`;
    case Line.WantKey:
      return `found ${token}, want a key in double quotes`;
    case Line.WantColon:
      return `found ${token}, want ':' after the key`;
    case Line.WantCommaOrBrace:
      return `found ${token}, want ',' or '}'`;
    case Line.WantCommaOrClose:
      return `found ${token}, want ',' or ']'`;
    case Line.BadEscape:
      return `found the escape ${value}, want one that JSON has`;
    case Line.LoneSurrogate:
      return `found ${value}, half of a surrogate pair, want both halves`;
    case Line.ControlByte:
      return `found the control byte ${value} in a string, want it escaped`;
    case Line.BadUTF8:
      return `found the byte ${value}, want UTF-8`;
  }
  const want = field !== 0 ? fieldOf(field).accepts : code === Line.BadNumber ? 'a JSON number' : 'a JSON value';
  return `found ${token}, want ${want}`;
}

/** The word at the start, up to where another could begin. @param {Uint8Array} rest */
function word(rest) {
  for (let i = 1; i < rest.length; i++) {
    if (' \t,:]}[{"'.includes(String.fromCharCode(rest[i]))) return rest.subarray(0, i);
  }
  return rest;
}

/** What is wrong with a line of a table. @param {number} code @param {number} field @param {Uint8Array} bytes */
function cellSentence(code, field, bytes) {
  const f = fieldOf(field);
  const column = `column "${f.name}"`;
  const cell = bytes.length > 0 ? foundText(bytes) : 'an empty cell';
  switch (code) {
    case Line.Missing:
      return `${column} is missing in the header, want it there`;
    case Line.Duplicate:
      return `${column} is given twice in the header, want it once`;
    case Line.WrongCells:
      return bytes.length > 0 ? `found ${cell} after as many cells as the header has, want no more` : 'found fewer cells than the header has, want as many';
    case Line.OpenQuote:
      return `found ${cell}, a cell in quotes that does not end with one, want it closed in the same line`;
    case Line.LineTooLong:
      return `the line is longer than ${MAX_LINE} bytes; want one JSON object per line`;
    case Line.ByteOrderMark:
      return 'the line begins with a byte order mark; want UTF-8 without one';
    case Line.OutOfRange:
      return `${column}: found ${cell}, want a number that fits 64 bits`;
  }
  const want =
    f.name === 'TIMESTAMP'
      ? 'a time like 2023-11-16 18:15:46.6805900, or with an offset from UTC like +00:00 behind it'
      : f.name === 'Timestamp' || f.name === 'Elapsed time'
        ? 'a number of seconds from 0'
        : 'an integer from 0';
  return `${column}: found ${cell}, want ${want}`;
}

/**
 * What is wrong with a row, alone or among the others.
 * @param {Pairs} p a refusal BadRow
 * @param {number} blockSize tokens behind each hash id
 * @param {string} format
 */
export function rowSentence(p, blockSize, format) {
  const code = Number(p.code);
  if (code === Row.Empty) return Number(p.lines) === 0 ? 'the file is empty, want at least one row' : 'found only blank lines, want at least one row';
  const [n, limit] = [String(p.found), String(p.limit)];
  if (format === 'applied_compute_agentic') return talkSentence(code, p) || buildSentence(code, n, limit, p);
  if (format === 'azure' || format === 'burstgpt') return requestSentence(code, n, limit, format) || buildSentence(code, n, limit, p);
  return mooncakeSentence(code, n, limit, p, blockSize) || buildSentence(code, n, limit, p);
}

/** Of a conversation with tools. @param {number} code @param {Pairs} p */
function talkSentence(code, p) {
  const name = `field "${fieldOf(Number(p.field)).name}": `;
  const ms = sentenceFloat(Number(p.ms));
  switch (code) {
    case Row.ListMismatch:
      return `${name}found ${p.found} items, want as many as num_turns says, ${p.limit}`;
    case Row.InputZero:
      return `${name}found 0, want a positive integer`;
    case Row.NegativeDelay:
      return `${name}found ${ms}, want numbers of seconds from 0`;
    case Row.DelayTooLong:
      return `${name}found ${ms}, want seconds that are finite as milliseconds`;
    case Row.InputTooLong:
      return `${name}the conversation grows to ${p.found} tokens, want at most ${p.limit}`;
    case Row.OutputTooLong:
      return `${name}found ${p.found}, want at most ${p.limit}`;
  }
  return '';
}

/** Of a row of a table. @param {number} code @param {string} n @param {string} limit @param {string} format */
function requestSentence(code, n, limit, format) {
  const [input, output] = format === 'burstgpt' ? ['Request tokens', 'Response tokens'] : ['ContextTokens', 'GeneratedTokens'];
  switch (code) {
    case Row.InputZero:
      return `column "${input}": found 0, want a positive integer`;
    case Row.InputTooLong:
      return `column "${input}": found ${n}, want at most ${limit}`;
    case Row.OutputTooLong:
      return `column "${output}": found ${n}, want at most ${limit}`;
    case Row.StartTooLate:
      return 'column "Timestamp": found a number of seconds that is none as milliseconds, want a smaller one';
  }
  return '';
}

/** Of a Mooncake row. @param {number} code @param {string} n @param {string} limit @param {Pairs} p @param {number} blockSize */
function mooncakeSentence(code, n, limit, p, blockSize) {
  const length = Number(p.input_length ?? -1);
  switch (code) {
    case Row.InputOverCapacity:
      return overCapacity(BigInt(Number(p.found)), limit, BigInt(Number(p.ids)), blockSize);
    case Row.InputZero:
      return length < 0 ? 'field "hash_ids": found [] and no "input_length", want a prompt of at least one token' : 'field "input_length": found 0, want a positive integer';
    case Row.InputTooLong:
      if (length >= 0) return `field "input_length": found ${n}, want at most ${limit}`;
      return `field "hash_ids": found ${p.ids} ids of ${blockSize} tokens each and no "input_length", want a prompt of at most ${limit} tokens`;
    case Row.OutputTooLong:
      return `field "output_length": found ${n}, want at most ${limit}`;
    case Row.OutputIDsMismatch:
      return `field "output_token_ids": found ${n} ids, want as many as output_length says, ${limit}`;
  }
  return '';
}

/** @param {bigint} found @param {string} limit @param {bigint} ids @param {number} blockSize */
function overCapacity(found, limit, ids, blockSize) {
  const text = `field "input_length": found ${found}, want at most ${limit}, which the row's ${ids} hash_ids cover with a trace block size of ${blockSize}`;
  return ids > 0n ? `${text}; this row was written with at least ${(found + ids - 1n) / ids}` : text;
}

/** @param {number} code @param {string} n @param {string} limit @param {Pairs} p */
function buildSentence(code, n, limit, p) {
  const ms = sentenceFloat(Number(p.ms));
  const id = p.session_id instanceof Uint8Array ? p.session_id : new Uint8Array();
  const session = ` of session ${foundText(id)}`;
  switch (code) {
    case Row.TooManyLines:
      return `the trace has more than ${limit} lines, which is the most`;
    case Row.TooManyRows:
      return `the trace has more than ${limit} rows, which is the most`;
    case Row.TooMuchText:
      return `the session ids have more than ${limit} bytes together, which is the most`;
    case Row.TooManyIDs:
      return `the prompts have more than ${limit} different hash ids, which is the most`;
    case Row.TooManyOutputIDs:
      return `the trace has more than ${limit} output token ids, which is the most`;
    case Row.FirstTurnDelay:
      return `field "delay": found ${ms} on the first turn${session}, want a delay on later turns only`;
    case Row.NegativeDelay:
      return `field "delay": found ${ms}, want a number of milliseconds from 0`;
    case Row.TimestampBackward:
      return `field "timestamp": found one ${ms.slice(1)} ms before that of the turn before${session}, want ascending timestamps in a session or a "delay"`;
    case Row.TimestampTooFar:
      return `field "timestamp": found one too far from that of the turn before${session}, want a finite difference`;
    case Row.NoTimestampBefore:
      return `field "timestamp": found one, but none on the turns before${session}, want a "delay" instead, or a timestamp there`;
    case Row.NoStart:
      return `field "timestamp" is missing on the first turn${session}, want one unless a concurrency cap starts the sessions`;
    case Row.NegativeStart:
      return `field "timestamp": found ${ms} on the first turn${session}, want 0 or more under a concurrency cap`;
    case Row.StartTooLate:
      return `field "timestamp": found one on the first turn${session} too far from the earliest, want a finite start after the speed-up`;
    case Row.TalkTooLong:
      return `the prompt of turn ${p.turn}${session} has ${n} tokens with all that was said before, want at most ${limit}`;
  }
  return `the delay of turn ${p.turn}${session} is infinite after the speed-up, want a smaller delay or a greater speed-up`;
}

/** Why a synthetic workload cannot be made. @param {Pairs} p a refusal BadRow */
export function syntheticSentence(p) {
  switch (Number(p.code)) {
    case Row.TooManyIDs:
      return `the prompts of the synthetic workload have more than ${p.limit} different blocks, which is the most; fewer or shorter requests are accepted`;
    case Row.StartTooLate:
    case Row.DelayTooLong:
      return 'the synthetic workload has times that are no numbers any more; a shorter interval or delay, a higher rate or a greater --arrival-speedup-ratio is accepted';
  }
  return `the synthetic workload has more than ${p.limit} requests, which is the most`;
}
