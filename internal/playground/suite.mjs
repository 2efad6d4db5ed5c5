// Uses the playground as people do, in a browser, and tells as JSON what it
// found: node suite.mjs KIND BROWSER URL DIR TOOLS PROGRAM ROOT [SOME]. KIND is
// chrome or firefox. Screenshots and downloads go to DIR; SOME chooses tests by their names. Whatever the browser complains of is a finding, too.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { axe, base, browser, dir, firefox, look, repeated, root, sameReport, saves, small, some, timeless, visit, want } from "./visit.mjs";

const suite = {
  async "the sample runs on opening"() {
    await visit("", async (v) => {
      const cards = await v.tab.$$eval(".card dt", (e) => e.map((c) => c.textContent));
      for (const name of ["TTFT, median", "ITL, median", "Request latency, median", "Within the goals", "Output throughput"]) want(cards.includes(name), `there is no card ${name}: ${cards}`);
      const figures = await v.tab.$$eval("figure canvas", (e) => e.map((c) => c.closest("figure").id));
      for (const id of ["latency-cdf", "ttft-over-time", "itl-over-time", "output-throughput", "queue-depth", "cache-hits", "by-worker", "passes"]) want(figures.includes(id), `there is no figure ${id}: ${figures}`);
      want((await v.tab.$$(".story")).length === 12, "there are no stories");
      want(v.asked.filter((url) => url.endsWith("/core.wasm")).length === 1, `the browser asks for ${v.asked.join(", ")}`);
      await sameReport(v);
    });
  },

  async "examples give the command line's reports"() {
    let links = [];
    await visit(small, async (v) => (links = await v.tab.$$eval("#example-list a", (e) => e.map((a) => a.getAttribute("href").slice(1)))));
    want(links.length >= 6, `${links.length} examples`);
    for (const link of links) {
      const sweep = link.includes("view=sweep");
      await visit(sweep ? link.replace(/&points=\d+/, "") + "&points=3" : link, async (v) => {
        await v.tab.waitForSelector("#export:not([hidden])", { timeout: 60_000 }); // the numbers, not yet the figures
        if (link.includes("view=compare")) {
          await sameReport(v, "-a");
          await sameReport(v, "-b");
        } else if (sweep) {
          await v.ran(0);
          want((await v.tab.$$("[aria-label=Sweep] tbody tr")).length === 3, "there are not three points");
        } else await sameReport(v);
      }, { ran: false });
    }
  },

  async "files are dropped"() {
    const text = await readFile(path.join(root, "examples/support-sessions.jsonl"), "utf8");
    await visit(small, async (v) => {
      await v.after(() => v.drop("mine.jsonl", text));
      const plain = (await v.saved("export-report")).content.toString();
      want((await v.text("#pick-trace")).includes("mine.jsonl"), "the page does not name the file");
      await v.after(() => v.drop("mine.jsonl.gz", gzipSync(text)));
      const packed = (await v.saved("export-report")).content.toString();
      want(timeless(plain) === timeless(packed), "a compressed trace gives another report");
      await writeFile(path.join(dir, "mine.jsonl.gz"), gzipSync(text));
      await sameReport(v, "", dir);
      const lines = text.split("\n");
      lines[2] = '{"timestamp": 1, "input_length": -3}';
      await v.after(() => v.drop("broken.jsonl", lines.join("\n")));
      const said = await v.text("#failed");
      want(said.includes("broken.jsonl:3: ") && said.includes("input_length"), `a broken line is told as: ${said}`);
      await v.after(() => v.drop("mine.jsonl", text));
      want((await v.tab.$("#failed")) === null, "the complaint stays");
      await v.after(() => v.drop("nonsense.jsonl.gz", Buffer.from("no gzip at all")));
      want((await v.text("#failed")).includes("gz"), `what is not compressed is told as: ${await v.text("#failed")}`);
      await v.after(() => v.drop("mine.jsonl", text));
      const grid = await readFile(path.join(root, "examples/grid-example-gpu.json"));
      await v.after(() => v.drop("grid-example-gpu.json", grid));
      want((await v.text("#pick-durations")).includes("grid-example-gpu.json"), "the page does not name the grid");
      await writeFile(path.join(dir, "mine.jsonl"), text);
      await writeFile(path.join(dir, "grid-example-gpu.json"), grid);
      await sameReport(v, "", dir);
    });
    await visit(small, async (v) => {
      const archive = await readFile(path.join(root, "testdata/cli/e18.npz"));
      await writeFile(path.join(dir, "mine.npz"), archive);
      await v.after(() => v.drop("mine.npz", archive));
      want((await v.link()).includes("timing=file&durations=mine.npz"), `the link is ${await v.link()}`);
      await sameReport(v, "", dir);
      await v.after(() => v.drop("mine.npz", archive.subarray(0, 300)));
      want((await v.text("#failed")).includes("mine.npz"), `half an archive is told as: ${await v.text("#panel")}`);
    });
    await visit("v=1&sample=agents&workers=2", (v) => sameReport(v));
    await visit("v=1&source=file&trace=away.jsonl", async (v) => {
      want((await v.text("#failed")).includes("away.jsonl"), "a link to a file does not ask for it");
      const input = await v.tab.$("#file-trace");
      await v.after(() => input.uploadFile(path.join(root, "examples/table.csv")));
      want((await v.tab.$("#failed")) === null, `a chosen file: ${await v.text("#panel")}`);
    });
  },

  async "files come again, change, and come several at once"() {
    const file = path.join(dir, "again.jsonl");
    const text = await readFile(path.join(root, "examples/support-sessions.jsonl"), "utf8");
    await visit(small, async (v) => {
      const choose = async () => v.after(async () => (await v.tab.$("#file-trace")).uploadFile(file));
      await writeFile(file, "no trace\n");
      await choose();
      want((await v.text("#failed")).includes("again.jsonl:1: "), `a broken file: ${await v.text("#panel")}`);
      await (firefox ? rm(file) : writeFile(file, text)); // Firefox reads what a file has become
      await v.after(() => v.click("#run"));
      want((await v.text("#failed")).includes("again.jsonl cannot be read: it has changed"), `a file that has changed: ${await v.text("#panel")}`);
      await writeFile(file, text);
      await choose();
      await v.tab.evaluate(() => {
        // WebKit tells when a file was changed last as it is now, and reads no more of it than it had.
        window.real = Object.getOwnPropertyDescriptor(File.prototype, "lastModified");
        Object.defineProperty(File.prototype, "lastModified", { get: () => 1, configurable: true });
      });
      await v.after(() => v.click("#run"));
      want((await v.text("#failed")).includes("again.jsonl cannot be read: it has changed"), `a file that has another date: ${await v.text("#panel")}`);
      await v.tab.evaluate(() => void Object.defineProperty(File.prototype, "lastModified", window.real));
      await choose();
      want((await v.text("#line")).startsWith("8 requests"), `it is not taken again: ${await v.text("#panel")}`);
      // Browsers empty the list of files after the event.
      const grid = await readFile(path.join(root, "examples/grid-example-gpu.json"), "utf8");
      await v.after(() => v.tab.evaluate((a, b) => {
        const files = [new File([b], "grid.json"), new File([a], "one.jsonl"), new File([a], "two.jsonl")];
        const e = new Event("drop", { bubbles: true, cancelable: true });
        Object.defineProperty(e, "dataTransfer", { value: { types: ["Files"], files } });
        document.body.dispatchEvent(e);
        files.length = 0;
      }, text, grid));
      want(/trace=one\.jsonl&durations=grid\.json/.test(await v.link()), `of three files: ${await v.link()}`);
      want((await v.text("#said")).includes("one.jsonl is taken"), `what is said: ${await v.text("#said")}`);
    });
    await visit("v=1&sample=agents&workers=2", async (v) => {
      await v.after(async () => v.drop("agents.json", await readFile(path.join(root, "examples/agents.json"))));
      await v.click(".faults button");
      want((await v.tab.evaluate(() => document.activeElement?.id)) === "field-execution_model", `the name of a model is asked for: ${await v.text("#panel")}`);
    });
  },

  async "a browser that does not let the link change"() {
    await visit(small, async (v) => {
      await v.tab.evaluate(() => {
        for (const name of ["replaceState", "pushState"]) {
          const real = history[name];
          history[name] = (...a) => {
            if (!window.lets) throw new DOMException("too often", "SecurityError");
            real.apply(history, a);
          };
        }
      });
      await v.after(() => v.click("#field-backend-sglang"));
      await look(v, "compare");
      want((await v.link()) === small, `the link is ${await v.link()}`);
      await v.tab.evaluate(() => (window.lets = true));
      await v.tab.waitForFunction(() => location.hash.includes("backend=sglang") && location.hash.includes("view=compare"));
    });
  },

  async "wrong values are marked where they are typed"() {
    await visit(small, async (v) => {
      const marked = (id) => v.tab.$eval(`#field-${id}`, (e) => [e.getAttribute("aria-invalid"), (e.getAttribute("aria-describedby") ?? "").split(" ").map((k) => document.getElementById(k)?.textContent ?? "").join(" ")]);
      for (const [id, text, sentence] of [["workers", "abc", "abc"], ["workers", "0", "0"], ["num_gpu_blocks", "-4", "-4"], ["block_size", "1", "at least 2"], ["max_num_seqs", "1.5", "1.5"], ["request_rate", "0", "0"], ["speedup_ratio", "-1", "-1"], ["enable_prefix_caching", null, ""]]) {
        if (text === null) continue;
        const before = await v.tab.$eval(`#field-${id}`, (e) => e.value);
        await v.after(() => v.type(id, text));
        const [invalid, said] = await marked(id);
        want(invalid === "true" && said.includes(sentence) && said.includes("accepted"), `${id} = ${text}: aria-invalid ${invalid}, described by ${JSON.stringify(said)}; the page says ${await v.text("#panel")}`);
        want((await v.link()).includes(`${id}=${encodeURIComponent(text)}`), `${id} = ${text} is not in the link: ${await v.link()}`);
        await v.after(() => v.type(id, before));
        want((await marked(id))[0] === null && (await v.tab.$("#failed")) === null, `${id}: the mark stays`);
      }
      await v.after(() => v.type("workers", "many"));
      await v.click(".faults button");
      want((await v.tab.evaluate(() => document.activeElement?.id)) === "field-workers", "a complaint does not lead to its field");
    });
  },

  async "a long run is cancelled"() {
    await visit("v=1&source=synthetic&request_count=2000000&input_tokens=512&output_tokens=600&request_rate=400&workers=8", async (v) => {
      await v.tab.waitForFunction(() => document.querySelector("#status progress").value > 0, { timeout: 60_000 }).catch(() => {});
      await v.click("#cancel");
      await v.tab.waitForFunction(() => document.getElementById("line").textContent === "Cancelled");
      want(await v.tab.$eval("#cancel", (e) => e.hidden), "there is something to cancel yet");
      await v.after(() => v.type("request_count", "50"));
      want((await v.text("#line")).includes("50 requests"), `the next run: ${await v.text("#line")}`);
    }, { ran: false });
  },

  async "two fleets are compared"() {
    await visit(`${small}&B.workers=3`, async (v) => {
      await look(v, "compare");
      want((await v.text("#comparison")).includes("Workers: 2 → 3"), `the difference is not named: ${await v.text("#comparison")}`);
      await v.click("#side-b");
      want((await v.tab.$eval('[data-field="workers"]', (e) => e.classList.contains("differs"))), "the field is not marked");
      await v.after(() => v.type("max_num_seqs", "2"));
      want((await v.link()).includes("B.max_num_seqs=2") && !/[?&#]max_num_seqs/.test(await v.link()), `the link is ${await v.link()}`);
      const rows = await v.tab.$$eval("[aria-label=Comparison] tbody tr", (e) => e.map((r) => [...r.children].map((c) => c.textContent)));
      const [a, b] = [JSON.parse((await v.saved("export-report-a")).content), JSON.parse((await v.saved("export-report-b")).content)];
      const row = rows.find((r) => r[0] === "TTFT, p99");
      const by = (100 * (b.p99_ttft_ms - a.p99_ttft_ms)) / a.p99_ttft_ms;
      want(Math.abs(Number(row[3].replace("−", "-").replace(/[^-.\d]/g, "")) - by) <= 0.5 && row[3].includes(by < 0 ? "better" : "worse"), `${row}, the reports say ${by} %`);
      await sameReport(v, "-b");
      await v.after(() => v.click('[data-field="workers"] .other'));
      await v.after(() => v.click('[data-field="max_num_seqs"] .other'));
      want((await v.text("#comparison")).includes("Both fleets are the same"), "B does not come back to A");
      want((await v.tab.$$(".figures figure")).length >= 6, "there are too few figures");
    });
  },

  async "a setting is swept"() {
    await visit(`${small}&sla_ttft_ms=300&view=sweep&from=1&to=3&points=3`, async (v) => {
      const rows = await v.tab.$$eval("[aria-label=Sweep] tbody tr", (e) => e.map((r) => [...r.children].map((c) => c.textContent)));
      want(rows.length === 3 && rows.every((r, i) => r[0] === String(i + 1) && r.every((c) => c !== "" && c !== "–")), `the points are ${JSON.stringify(rows)}`);
      want((await v.text("#sweep-verdict .verdict")).includes("goals"), "the goals are not judged");
      await v.after(() => v.tab.select("#sweep-field", "request_rate"));
      want((await v.link()).includes("sweep=request_rate"), `the link is ${await v.link()}`);
      await v.tab.$eval("#sweep-points", (e) => ((e.value = "99"), e.dispatchEvent(new Event("change"))));
      want((await v.tab.$eval("#sweep-points", (e) => e.getAttribute("aria-invalid"))) === "true" && (await v.text("#sweep-error")).includes("25"), "99 points are accepted");
      const csv = (await v.saved("export-sweep")).content.toString().trim().split("\n");
      want(csv.length === 4 && csv[0].startsWith("value,"), `the points as CSV: ${csv}`);
    });
    await visit(`${small}&view=sweep&from=3&to=2`, async (v) => {
      want((await v.tab.$$("[aria-label=Sweep] tbody tr")).length === 2, `from 3 to 2: ${await v.text("#panel")}`);
    });
    // With one block nothing is served, and with more something.
    const blocks = `${small}&view=sweep&sweep=num_gpu_blocks&points=2&from=1`;
    await visit(`${blocks}&to=4000`, async (v) => want((await v.text("#sweep-verdict")).startsWith("By KV blocksMost output per GPU at KV blocks 4,000."), await v.text("#sweep-verdict")));
    await visit(`${blocks}&to=2`, async (v) => want((await v.text("#sweep-verdict .verdict")) === "No point serves a request.", await v.text("#sweep-verdict")));
    await visit(`${small}&view=sweep&sweep=block_size`, async (v) => want((await v.text("#notice")).includes("sweep"), "what cannot be swept is"), {});
  },

  async "a link has the whole state"() {
    await visit(small, async (v) => {
      await v.after(() => v.type("workers", "3"));
      await v.click("#field-backend-trtllm");
      await v.type("num_gpu_blocks", "900");
      await v.type("request_rate", "7.5");
      await v.click("#field-enable_prefix_caching");
      await v.choose("router", "kv_router");
      await v.type("overlap_score_credit", "0.4");
      await v.choose("timing", "fixed");
      await v.after(() => v.type("sla_ttft_ms", "123.5"));
      await v.tab.waitForFunction(() => !document.getElementById("panel").hasAttribute("aria-busy"));
      const report = await sameReport(v);
      await v.click("#copy-link");
      await v.tab.waitForFunction(() => document.getElementById("said").textContent.includes("link"));
      const copied = await v.clipboard();
      want(copied === `${base}#${await v.link()}`, `the copied link is ${copied}`);
      const shown = (w) => w.tab.$$eval("#settings input, #settings select", (all) => all.map((e) => [e.id, e.type === "checkbox" || e.type === "radio" ? e.checked : e.value]));
      const here = JSON.stringify(await shown(v));
      await visit(copied.split("#")[1], async (w) => {
        want((await w.link()) === (await v.link()), `the link becomes ${await w.link()}`);
        want(JSON.stringify(await shown(w)) === here, "controls show something else");
        want(timeless((await w.saved("export-report")).content.toString()) === report, "the report differs");
      });
    });
    await visit(small, async (v) => {
      await look(v, "compare");
      await v.after(() => v.tab.goBack());
      want(!(await v.link()).includes("compare") && (await v.tab.$eval("#tab-run", (e) => e.getAttribute("aria-selected"))) === "true", "back does not lead back");
    });
  },

  async "links of junk do no harm"() {
    await visit(small, async (v) => {
      for (const junk of ["v=2&workers=3", "workers=4", "v=1&&&=&==", "v=1&workers=%", "v=1&view=nothing&sample=../../x&backend=<script>", "v=1&B.source=file&B.=1&__proto__=1&constructor=2&points=1e9&from=NaN", `v=1&trace=${"x".repeat(5000)}&source=synthetic&request_count=10`, "%%%", "v=1&" + "a=1&".repeat(2000)]) {
        await v.after(() => v.tab.evaluate((hash) => (location.hash = hash), junk));
        want(await v.tab.$eval("#notice", (e) => !e.hidden && e.textContent.length < 20_000), `${junk.slice(0, 60)}: nothing is told`);
        want((await v.tab.$("#failed")) === null, `${junk.slice(0, 60)}: ${await v.text("#panel")}`);
      }
    });
    await visit("v=1&%&workers=2&source=synthetic&request_count=20&what=ever", async (v) => want((await v.text("#notice")).includes("what") && (await v.text("#line")).includes("20 requests"), "a link with junk in it is not opened"));
  },

  async "a page without a clipboard"() {
    await visit(small, async (v) => {
      await v.tab.evaluate(() => {
        window.kept = navigator.clipboard;
        Object.defineProperty(navigator, "clipboard", { value: undefined });
      });
      await v.tab.click("#copy-link");
      await v.tab.waitForFunction(() => document.getElementById("said").textContent === "The link is copied");
      const copied = await v.tab.evaluate(() => window.kept.readText());
      want(copied === `${base}#${await v.link()}`, `the copied link is ${copied}`);
      want((await v.tab.$("textarea")) === null && (await v.tab.evaluate(() => document.activeElement?.id)) === "copy-link", "the focus is elsewhere");
      await v.tab.evaluate(() => (document.execCommand = () => false));
      const asked = new Promise((done) => v.tab.once("dialog", async (d) => (done([d.message(), d.defaultValue()]), await d.dismiss())));
      await v.tab.click("#copy-link");
      const [message, shown] = await asked;
      want(message.includes("The link:") && shown === copied, `the page says ${message} ${shown}`);
    });
  },

  async "results are taken away"() {
    await visit("v=1&sample=support-sessions&workers=2", async (v) => {
      await sameReport(v);
      const jsonl = (await v.saved("export-jsonl")).content.toString();
      want(jsonl === (await repeated(v, "copy-command", "--report-jsonl")), "the requests differ from those of the command line");
      const csv = (await v.saved("export-csv")).content.toString().trim().split("\r\n");
      want(csv.length === 9 && csv[0].includes("ttft_ms"), `the table has ${csv.length} lines: ${csv[0]}`);
      for (const id of ["latency-cdf", "by-worker", "passes"]) {
        await v.tab.$eval(`#${id}`, (e) => (e.querySelector("figcaption button").id = `png-${e.id}`));
        const png = await v.saved(`png-${id}`);
        want(png.name === `${id}.png` && png.content.subarray(1, 4).toString() === "PNG" && png.content.length > 2000, `${id}: the picture is ${png.name}, ${png.content.length} bytes`);
      }
    });
  },

  async "a run by keys alone"() {
    await visit(small, async (v) => {
      const at = () => v.tab.evaluate(() => [document.activeElement?.id ?? "", document.activeElement?.closest("figure")?.id ?? ""]);
      const visible = () => v.tab.evaluate(() => {
        const e = document.activeElement;
        const ring = (x) => x && getComputedStyle(x).outlineStyle !== "none" && getComputedStyle(x).outlineWidth !== "0px";
        return e.matches("input[type=radio]") ? ring(e.nextElementSibling) : ring(e);
      });
      const seen = new Set();
      let last = "";
      for (let i = 0; i < 220; i++) {
        await v.tab.keyboard.press("Tab");
        const [id, figure] = await at();
        last = id;
        if (id === "" && figure === "" && (await v.tab.evaluate(() => document.activeElement === document.body))) break;
        seen.add(id || figure);
        if (figure) seen.add(figure);
        want(await visible(), `the focus on ${id || figure} is not visible`);
        if (id === "field-workers") {
          await v.tab.keyboard.down("Control");
          await v.tab.keyboard.press("a");
          await v.tab.keyboard.up("Control");
          await v.after(() => v.tab.keyboard.type("4"));
          want((await v.link()).includes("workers=4"), "typing does not change the workers");
        }
        if (figure === "ttft-over-time" && (await v.tab.evaluate(() => document.activeElement.classList.contains("stage")))) {
          const tip = () => v.tab.$eval("#ttft-over-time .tip", (e) => (e.hidden ? null : e.textContent));
          await v.tab.keyboard.press("Home");
          const first = await tip();
          await v.tab.keyboard.press("End");
          const end = await tip();
          await v.tab.keyboard.press("Escape");
          want(first && end && first !== end && (await tip()) === null, `the cursor tells ${first}, then ${end}, then ${await tip()}`);
        }
      }
      for (const id of ["skip", "copy-link", "theme", "field-source-synthetic", "field-workers", "field-router", "tab-run", "run", "latency-cdf", "ttft-over-time", "by-worker", "passes", "slowest-by"]) want(seen.has(id), `${id} is not reached by keys; the last was ${last}`);
      await v.tab.focus("#tab-run");
      await v.after(() => v.tab.keyboard.press("ArrowRight"));
      want((await at())[0] === "tab-compare", "arrows do not move between views");
      await v.tab.focus("#examples summary");
      await v.tab.keyboard.press("Enter");
      want(await v.tab.$eval("#examples", (e) => e.open), "Enter does not open the examples");
      await v.tab.keyboard.press("Escape");
      want(!(await v.tab.$eval("#examples", (e) => e.open)), "Escape does not close the examples");
    });
  },

  async "it is printed"() {
    await visit(small, async (v) => {
      await v.tab.evaluate(() => {
        // What of a figure is in the first colour of the light scheme when a browser copies the page.
        window.copies = [];
        addEventListener("beforeprint", () => {
          for (const c of document.querySelectorAll(".stage canvas:not(.map)")) {
            const seen = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
            let blue = 0;
            for (let i = 0; i < seen.length; i += 4) if (seen[i] === 0 && seen[i + 1] === 0x67 && seen[i + 2] === 0xad && seen[i + 3] === 255) blue++;
            window.copies.push([c.closest("figure").id, blue]);
          }
        });
      });
      const pdf = await v.tab.pdf({ path: path.join(dir, "printed.pdf"), format: "a4" });
      want(pdf.length > 20_000, `${pdf.length} bytes are printed`);
      const copies = await v.tab.evaluate(() => window.copies);
      want(copies.length >= 8 && copies.every(([, blue]) => blue > 50), `figures for paper: ${JSON.stringify(copies)}`);
      want((await v.tab.evaluate(() => document.documentElement.dataset.theme)) === undefined, "the page stays light");
      await v.tab.emulateMediaType("print");
      const shown = await v.tab.$$eval("button, select, input, summary", (all) => all.filter((e) => e.checkVisibility() && !e.closest(".legend, .story, .choices")).map((e) => e.outerHTML.slice(0, 60)));
      want(shown.length === 0, `on paper one cannot press ${shown}`);
    }, { scheme: "dark" });
  },

  async "the theme is chosen and kept"() {
    await visit(small, async (v) => {
      const paper = () => v.tab.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await paper();
      await v.tab.select("#theme", "dark");
      const dark = await paper();
      want(light !== dark, "dark is as light");
      await v.tab.reload();
      await v.ran(0);
      want((await paper()) === dark, "the choice is not kept");
      await v.tab.select("#theme", "auto");
      want((await paper()) === light, "the system's scheme is not followed");
    });
    await visit(small, async (v) => want((await v.tab.$eval("#figures", (e) => getComputedStyle(e).transitionDuration)) === "0s", "things move though motion is unwanted"), { reduced: true });
  },
};

/** Views that are looked at in every width and scheme. */
const looks = {
  run: "",
  compare: "v=1&sla_ttft_ms=500&sla_itl_ms=25&workers=4&num_gpu_blocks=3200&B.router=kv_router&view=compare",
  sweep: "v=1&source=synthetic&request_count=200&sla_ttft_ms=400&sla_itl_ms=25&view=sweep&to=4&points=4",
  synthetic: "v=1&source=synthetic&request_count=100&turns_per_session=3&shared_prefix_ratio=0.3&num_prefix_groups=4&backend=sglang&layout=pools&router=kv_router&timing=fixed&prefill_workers=2&decode_workers=2",
  wrong: "v=1&source=synthetic&workers=no",
};
for (const [name, hash] of Object.entries(looks)) {
  suite[`looks: ${name}`] = async () => {
    for (const scheme of ["light", "dark"]) {
      await visit(hash, async (v) => {
        if (name === "compare") await v.click("#side-b");
        for (const width of [1280, 390]) {
          await v.tab.setViewport({ width, height: 900 });
          await v.tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 60))));
          await sideways(v, `${name}, ${width} px`);
          await v.tab.screenshot({ path: path.join(dir, `${name}-${width}-${scheme}.png`), fullPage: true });
          if (width === 390) await tapped(v);
          await opened(v, `${name}, ${width} px`);
        }
        await v.tab.setViewport({ width: 1280, height: 900 });
        await v.tab.$$eval("details.group, .story:first-of-type, #percentiles, #loads, #latency-cdf details, #sweep-ttft details", (all) => all.forEach((e) => (e.open = true)));
        await v.tab.evaluate(axe);
        const found = await v.tab.evaluate(async () => (await window.axe.run(document, { resultTypes: ["violations"] })).violations.map((x) => `${x.id} (${x.nodes.length}): ${x.nodes[0].html.slice(0, 160)} ${x.nodes[0].failureSummary}`));
        want(found.length === 0, `axe, ${scheme}: ${found.join("\n")}`);
        await v.tab.evaluate(() => (document.documentElement.style.fontSize = "200%"));
        await sideways(v, `${name}, letters twice as large`);
      }, { scheme });
    }
  };
}

/** Nothing makes the page wider than the window. */
async function sideways(v, what) {
  const wide = await v.tab.evaluate(() => {
    const inner = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= inner) return [];
    return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > inner + 1 && !e.closest(".scroll")).slice(0, 5).map((e) => `${e.tagName}.${e.className}#${e.id}`).concat(`${document.documentElement.scrollWidth} px`);
  });
  want(wide.length === 0, `${what}: one has to scroll sideways because of ${wide.join(", ")}`);
}

/** Menus are within the window when they are open. */
async function opened(v, what) {
  const out = await v.tab.$$eval("details.menu:not([hidden])", (all) => all.flatMap((menu) => {
    menu.open = true;
    const box = menu.querySelector("ul").getBoundingClientRect();
    menu.open = false;
    return box.left >= 0 && box.right <= document.documentElement.clientWidth && box.width > 100 ? [] : [`${menu.id} from ${box.left} to ${box.right}`];
  }));
  want(out.length === 0, `${what}: outside of the window: ${out.join(", ")}`);
}

/** What is pressed with a finger is large enough for it. */
async function tapped(v) {
  const low = await v.tab.$$eval("button, select, input:not([type=range]):not([type=checkbox]):not([type=radio]):not([type=file])", (all) => all.filter((e) => e.offsetParent && e.getBoundingClientRect().height < 24).map((e) => e.outerHTML.slice(0, 80)));
  want(low.length === 0, `too low for a finger: ${low.join(", ")}`);
}

await mkdir(saves, { recursive: true });
/** What needs a scheme, a medium or a page without the browser's own buttons, none of which can be had of Firefox. */
const elsewhere = /^(it is printed|the theme is chosen|a run by keys|looks: )/;
const only = some ? new RegExp(some) : null;
const results = [];
try {
  for (const [name, test] of Object.entries(suite)) {
    if ((only && !only.test(name)) || (firefox && elsewhere.test(name))) continue;
    const began = Date.now();
    let fault = "";
    try {
      await test();
    } catch (e) {
      fault = `${e.message}\n${(e.stack ?? "").split("\n").filter((l) => l.includes("suite.mjs")).join("\n")}`;
    }
    results.push({ name, fault, ms: Date.now() - began });
  }
} finally {
  await browser.close();
}
console.log(JSON.stringify(results));
