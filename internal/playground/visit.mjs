// A browser and what one does to the playground in it, for suite.mjs, whose
// arguments these are.
import { execFile } from "node:child_process";
import { readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

export const [kind, browserPath, base, dir, tools, program, root, some] = process.argv.slice(2);
const require = createRequire(path.join(tools, "package.json"));
const { default: puppeteer } = await import(pathToFileURL(require.resolve("puppeteer-core")));
export const axe = await readFile(require.resolve("axe-core/axe.min.js"), "utf8");
export const small = "v=1&source=synthetic&request_count=60&workers=2";

export const firefox = kind === "firefox";

/** Where Firefox puts what is saved; of Chromium each visit has its own place. */
export const saves = path.join(path.resolve(dir), "saved");
// The sandbox of a browser needs what containers often lack; the page is ours.
export const browser = await puppeteer.launch({
  browser: kind, executablePath: browserPath, headless: true, timeout: 120_000,
  args: firefox ? [] : ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
  extraPrefsFirefox: { "dom.events.testing.asyncClipboard": true, "browser.download.folderList": 2, "browser.download.dir": saves, "browser.download.useDownloadDir": true, "browser.download.always_ask_before_handling_new_types": false },
});
if (!firefox) await browser.defaultBrowserContext().overridePermissions(new URL(base).origin, ["clipboard-read", "clipboard-sanitized-write"]);

/** Fails with a text unless a condition holds. */
export function want(condition, text) {
  if (!condition) throw new Error(text);
}

/** A page of the playground with what one does to it. */
class Visit {
  static async open(hash, { width = 1280, scheme = "light", reduced = false, ran = true } = {}) {
    const v = new Visit();
    v.told = [];
    v.asked = [];
    v.tab = await browser.newPage();
    v.tab.on("request", (r) => v.asked.push(r.url()));
    v.tab.on("console", (m) => v.told.push(`${m.type()}: ${m.text()}`));
    v.tab.on("pageerror", (e) => v.told.push(`error: ${e.message}`));
    v.tab.on("requestfailed", (r) => v.told.push(`failed: ${r.url()}`));
    v.tab.on("request", (r) => r.url().startsWith(base) || r.url().startsWith("data:") || r.url().startsWith("blob:") || v.told.push(`asks for: ${r.url()}`));
    v.tab.on("response", (r) => r.status() < 400 || v.told.push(`${r.status()}: ${r.url()}`));
    await v.tab.evaluateOnNewDocument(() => addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} ${e.blockedURI}`)));
    await v.tab.evaluateOnNewDocument(() => {
      const { click } = HTMLAnchorElement.prototype;
      HTMLAnchorElement.prototype.click = function () {
        window.saving = this.download;
        click.call(this);
      };
    });
    if (!firefox) await v.tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: reduced ? "reduce" : "no-preference" }]);
    await v.tab.setViewport({ width, height: 900 });
    visits++;
    v.downloads = firefox ? saves : path.join(dir, `downloads-${visits}`);
    if (!firefox) {
      const session = await v.tab.createCDPSession();
      await session.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: v.downloads });
    }
    await v.tab.goto(base + (hash ? `#${hash}` : ""));
    if (ran) await v.ran(0);
    return v;
  }

  count() {
    return this.tab.evaluate(() => Number(document.body.dataset.ran ?? 0));
  }

  /** Waits until more than n runs have come to an end and none is under way. */
  async ran(n) {
    await this.tab.waitForFunction((k) => Number(document.body.dataset.ran ?? 0) > k && !document.getElementById("panel").hasAttribute("aria-busy"), { timeout: 60_000, polling: 50 }, n);
  }

  /** Does something that starts a run, and waits for it. */
  async after(act) {
    const n = await this.count();
    await act();
    await this.ran(n);
  }

  text(selector) {
    return this.tab.$eval(selector, (e) => e.textContent);
  }

  /** Types into a field. */
  async type(id, text) {
    await this.tab.$eval(`#field-${id}`, (e) => e.closest("details")?.setAttribute("open", ""));
    await this.tab.focus(`#field-${id}`);
    await this.tab.$eval(`#field-${id}`, (e) => e.select());
    if (text === "") await this.tab.keyboard.press("Delete");
    else await this.tab.keyboard.type(text);
  }

  choose(id, value) {
    return this.tab.select(`#field-${id}`, value);
  }

  click(selector) {
    return this.tab.$eval(selector, (e) => e.click());
  }

  link() {
    return this.tab.evaluate(() => location.hash.slice(1));
  }

  clipboard() {
    return this.tab.evaluate(() => navigator.clipboard.readText());
  }

  /** Presses a button of the export menu and returns the file that comes. */
  async saved(id) {
    await this.tab.evaluate(() => (window.saving = ""));
    await this.click(`#${id}`);
    await this.tab.waitForFunction(() => window.saving, { polling: 20 });
    const name = await this.tab.evaluate(() => window.saving);
    const file = path.join(this.downloads, name); // until it is whole browsers give it other names, or nothing to this one
    for (let i = 0; i < 200; i++) {
      const content = await readFile(file).catch(() => "");
      if (content.length > 0) {
        await rm(file);
        return { name, content };
      }
      await new Promise((done) => setTimeout(done, 25));
    }
    throw new Error(`${id}: no file was saved`);
  }

  /** Drops a file on the page. */
  drop(name, content) {
    return this.tab.evaluate((n, base64) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], n));
      for (const type of ["dragenter", "dragover", "drop"]) document.body.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, name, Buffer.from(content).toString("base64"));
  }

  async close() {
    await this.tab.close();
    want(this.told.length === 0, `the browser tells: ${this.told.join("; ")}`);
  }
}
let visits = 0;

/** Opens a page, does something with it, and closes it in any case. */
export async function visit(hash, act, options) {
  const v = await Visit.open(hash, options);
  try {
    await act(v);
  } catch (e) {
    await v.tab.screenshot({ path: path.join(dir, "failed.png") }).catch(() => {});
    e.message += v.told.length > 0 ? `; the browser tells: ${v.told.join("; ")}` : "";
    await v.tab.close();
    throw e;
  }
  await v.close();
}

export const timeless = (text) => text.replace(/"(wall_time_ms|processed_tokens_per_s|processed_output_tokens_per_s)": [^,\n]*/g, '"$1": 0');

/** What the program writes for the command line that the page gives. */
export async function repeated(v, copy, flag, folder) {
  await v.click(`#${copy}`);
  await v.tab.waitForFunction(() => document.getElementById("said").textContent.includes("command line"));
  const command = await v.clipboard();
  want(command.startsWith("replay "), `the command line is ${command}`);
  const out = path.join(dir, `out-${visits}-${copy}`);
  await promisify(execFile)("sh", ["-c", `exec ${JSON.stringify(program)} ${command.slice(7)} --no-table ${flag} ${JSON.stringify(out)}`], { cwd: folder ?? path.join(root, "examples") });
  return readFile(out, "utf8");
}

/** The report of a result has the bytes that the program writes. */
export async function sameReport(v, end = "", folder) {
  const report = (await v.saved(`export-report${end}`)).content.toString();
  const other = await repeated(v, `copy-command${end}`, "--report-json", folder);
  want(report.length > 1000, `the report is ${report}`);
  want(timeless(report) === timeless(other), `the report differs from that of the command line: ${await v.clipboard()}\n${firstDifference(timeless(report), timeless(other))}`);
  return timeless(report);
}

function firstDifference(a, b) {
  const [x, y] = [a.split("\n"), b.split("\n")];
  const i = x.findIndex((l, k) => l !== y[k]);
  return `line ${i + 1}: ${x[i]}, want ${y[i]}`;
}

/** Clicks what changes the view. */
export const look = (v, view) => v.after(() => v.click(`#tab-${view}`));
