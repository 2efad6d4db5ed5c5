// Repeats the recorded dialogues with core.wasm in Node: node dialogue.mjs CORE DIALOGUE
import { readFileSync } from 'node:fs';
import { WASI } from 'node:wasi';

const [core, dialogue] = process.argv.slice(2);
const wasi = new WASI({ version: 'preview1' });
const { instance } = await WebAssembly.instantiate(readFileSync(core), wasi.getImportObject());
wasi.initialize(instance);
const guest = instance.exports;

function call(handle, op, request) {
  const at = guest.mailbox(request.length);
  new Uint8Array(guest.memory.buffer, at, request.length).set(request);
  const n = guest.call(handle, op, request.length);
  return Buffer.from(new Uint8Array(guest.memory.buffer, guest.mailbox(0), n)).toString('hex');
}

let handle = 0, op = 0, request = null, calls = 0;
for (const line of readFileSync(dialogue, 'utf8').split('\n')) {
  let m;
  if (line.startsWith('== ')) {
    guest.close(handle);
    handle = guest.open();
  } else if ((m = /^-- op (\d+): /.exec(line))) {
    op = Number(m[1]);
  } else if ((m = /^> ([0-9a-f]*)$/.exec(line))) {
    request = Buffer.from(m[1], 'hex');
  } else if ((m = /^< ([0-9a-f]*)$/.exec(line))) {
    calls++;
    const answer = call(handle, op, request);
    if (answer !== m[1]) {
      console.error(`call ${calls}, op ${op}: got\n${answer}\nwant\n${m[1]}`);
      process.exit(1);
    }
  }
}
console.log(`${calls} calls`);
