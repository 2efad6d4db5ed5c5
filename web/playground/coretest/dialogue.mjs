// node dialogue.mjs CORE DIALOGUE speaks the recorded dialogues with the sources'
// own codec, and prints how much it has compared. Where something differs it says
// so and fails.
import { readFileSync } from 'node:fs';
import { Guest } from '../src/core/guest.js';
import { decode, encode } from '../src/core/msgpack.js';

const [core, dialogue] = process.argv.slice(2);
const guest = await Guest.instantiate(new WebAssembly.Module(readFileSync(core)));
const count = { calls: 0, frames: 0, values: 0 };

function fail(what, got, want) {
  console.error(`call ${count.calls}: ${what}: got\n${got}\nwant\n${want}`);
  process.exit(1);
}

/** Whether a value is what the record spells out, as Go prints it. */
function says(value, spelt) {
  if (value instanceof Uint8Array) return spelt.startsWith(`${value.length} bytes `);
  if (typeof value === 'number') return Number(spelt.replace(/^\+Inf$/, 'Infinity')) === value;
  return spelt === String(value);
}

let [handle, op, request, pairs] = [0, 0, null, null];
for (const line of readFileSync(dialogue, 'utf8').split('\n')) {
  let m;
  if (line.startsWith('== ')) {
    if (handle !== 0) guest.close(handle);
    handle = guest.open();
  } else if ((m = /^-- op (\d+): /.exec(line))) {
    op = Number(m[1]);
  } else if ((m = /^([<>]) ([0-9a-f]*)$/.exec(line))) {
    const bytes = new Uint8Array(Buffer.from(m[2], 'hex'));
    if (m[1] === '>') {
      request = bytes;
    } else {
      count.calls++;
      answer(bytes, m[2]);
    }
    pairs = tried(bytes);
  } else if ((m = /^[<>]   ([^:]+): (.*)$/.exec(line)) && pairs !== null && m[1] !== 'v') {
    count.values++;
    if (!says(pairs[m[1]], m[2])) fail(m[1], pairs[m[1]], m[2]);
  }
}

/** Sends the request as it was read and written again, if it can be read. */
function answer(want, hex) {
  const read = tried(request);
  const got = Buffer.from(guest.exchange(handle, op, read === null ? request : encode(read))).toString('hex');
  if (got !== hex) fail('the answer', got, hex);
  const again = tried(want);
  if (again === null) return;
  count.frames++;
  const twice = decode(encode(again));
  for (const [k, v] of Object.entries(again)) if (String(twice[k]) !== String(v)) fail(k, twice[k], v);
}

/** What a frame says; null if it is none or of another version. */
function tried(bytes) {
  try {
    return decode(bytes);
  } catch {
    return null;
  }
}
process.stdout.write(JSON.stringify(count));
