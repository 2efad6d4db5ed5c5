// Builds the playground into a directory that any static host can serve:
//   node build.mjs --out DIR --modules DIR --core core.wasm [--no-compress]
// Scripts are bundled and made small; files that are worth it have .br and .gz
// beside them. Compressing core.wasm takes long, so what was compressed once is
// kept beside the modules.
import { createHash } from "node:crypto";
import { cp, mkdir, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { parseArgs, promisify } from "node:util";
import zlib from "node:zlib";

const { values: flags } = parseArgs({ options: { out: { type: "string" }, modules: { type: "string" }, core: { type: "string" }, "no-compress": { type: "boolean" } } });
if (!flags.out || !flags.modules || !flags.core) {
  console.error("usage: build.mjs --out DIR --modules DIR --core core.wasm [--no-compress]");
  process.exit(2);
}
const here = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const root = path.resolve(here, "../..");
const out = path.resolve(flags.out);
const modules = path.resolve(flags.modules, "node_modules");
const require = createRequire(path.join(path.resolve(flags.modules), "package.json"));
const esbuild = await import(pathToFileURL(require.resolve("esbuild")));

await rm(out, { recursive: true, force: true });
await mkdir(path.join(out, "samples"), { recursive: true });
await esbuild.build({
  entryPoints: { main: path.join(here, "src/main.js"), early: path.join(here, "src/early.js"), worker: path.join(here, "src/core/worker.js"), style: path.join(here, "src/style.css") },
  outdir: out, bundle: true, minify: true, format: "esm", target: "es2022", charset: "utf8", legalComments: "none", splitting: true, chunkNames: "shared", nodePaths: [modules], logLevel: "warning", plugins: [{ name: "languages", setup: (build) => build.onLoad({ filter: /uPlot\.esm\.js$/ }, anyLanguage) }],
});
await cp(path.join(here, "index.html"), path.join(out, "index.html"));
await cp(flags.core, path.join(out, "core.wasm"));
const examples = path.join(root, "examples");
for (const name of await readdir(examples)) {
  if (/^(conversation-.*\.jsonl|support-sessions\.jsonl|agents\.json|table\.csv|grid-(?!example).*\.json)$/.test(name)) await cp(path.join(examples, name), path.join(out, "samples", name));
}
await writeFile(path.join(out, "LICENSES.txt"), await licences());
if (!flags["no-compress"]) await compress();

// uPlot wants a language of the browser that Intl knows, and ends the page where
// there is none, as "C" in WebKit. All numbers of the page are written as en-US.
async function anyLanguage({ path: file }) {
  const text = await readFile(file, "utf8");
  const parts = text.split("new Intl.NumberFormat(domEnv ? nav.language : 'en-US')");
  if (parts.length !== 2) throw new Error("uPlot asks for the browser's language no longer, or in another way");
  return { contents: parts.join('new Intl.NumberFormat("en-US")') };
}

// What has to be told of others' work that is in dist.
async function licences() {
  const grids = await readFile(path.join(examples, "README.md"), "utf8");
  const credit = grids.match(/computed from measurements that are (Copyright[^;]*)/);
  if (!credit) throw new Error("examples/README.md says no longer whose measurements are in the grids");
  return [
    `Dryserve playground\n\n${await readFile(path.join(root, "LICENSE"), "utf8")}`,
    `uPlot ${require("uplot/package.json").version}\n\n${await readFile(path.join(modules, "uplot/LICENSE"), "utf8")}`,
    `The grids in samples/ are computed from measurements that are\n${credit[1].trim()}\n`,
  ].join("\n\n----------------------------------------\n\n");
}

async function compress() {
  const kept = path.join(path.resolve(flags.modules), "compressed");
  await mkdir(kept, { recursive: true });
  const { constants: c } = zlib;
  const pack = {
    br: (b) => promisify(zlib.brotliCompress)(b, { params: { [c.BROTLI_PARAM_QUALITY]: 11, [c.BROTLI_PARAM_LGWIN]: 24, [c.BROTLI_PARAM_SIZE_HINT]: b.length } }),
    gz: (b) => promisify(zlib.gzip)(b, { level: 9 }),
  };
  const work = [];
  for (const entry of await readdir(out, { recursive: true })) {
    const file = path.join(out, entry);
    if (!(await stat(file)).isFile()) continue;
    const content = await readFile(file);
    for (const [suffix, f] of Object.entries(pack)) work.push(packed(file, content, suffix, f));
  }
  await Promise.all(work);

  async function packed(file, content, suffix, f) {
    const copy = path.join(kept, `${createHash("sha256").update(content).digest("hex")}.${suffix}`);
    let small = await readFile(copy).catch(() => null);
    if (small === null) {
      small = await f(content);
      if (content.length > 1e6) await writeFile(copy, small);
    }
    if (small.length < content.length) await writeFile(`${file}.${suffix}`, small);
  }
}
