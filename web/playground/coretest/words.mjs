// node words.mjs CASES: words what cases say; prints a list in JSON. A case is
// {what: 'trace', frame, blockSize, format} with a refusal in hexadecimal, or
// {what: 'python' | 'line' | 'sentence', bits} with a float64, or {what: 'quote', text}.
import { readFileSync } from 'node:fs';
import { decode } from '../src/core/msgpack.js';
import { Refusal } from '../src/core/guest.js';
import { complaintOf } from '../src/core/sentences.js';
import { jsonText, lineFloat, pythonFloat, sentenceFloat } from '../src/core/spell.js';
import { nearest, quote } from '../src/core/wording.js';

const float = (bits) => new Float64Array(new BigUint64Array([BigInt(bits)]).buffer)[0];
const words = {
  trace: (c) => {
    const complaint = complaintOf(new Refusal(decode(Buffer.from(c.frame, 'hex'))), { synthetic: false, traceBlockSize: c.blockSize }, c.format);
    return complaint.line === undefined ? complaint.sentence : `${complaint.line}: ${complaint.sentence}`;
  },
  python: (c) => pythonFloat(float(c.bits)),
  line: (c) => lineFloat(float(c.bits)),
  sentence: (c) => sentenceFloat(float(c.bits)),
  quote: (c) => quote(c.text),
  json: (c) => jsonText(c.text),
  nearest: (c) => nearest(c.text, c.known),
};
const cases = JSON.parse(readFileSync(process.argv[2], 'utf8'));
process.stdout.write(JSON.stringify(cases.map((c) => words[c.what](c))));
