// node gunzip.mjs FILE... prints the text of each, or why there is none.
import { readFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { gunzip } from '../src/core/gunzip.js';

for (const file of process.argv.slice(2)) {
  const hash = createHash('sha256');
  let why = '';
  try {
    for (const part of gunzip(new Uint8Array(readFileSync(file)))) hash.update(part);
  } catch (e) {
    why = e.constructor.name;
  }
  console.log(why || hash.digest('hex'));
}
