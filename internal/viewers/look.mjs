// Opens a page in a browser at two widths, light and dark, and tells what it
// saw as JSON: node look.mjs BROWSER PAGE DIR. Screenshots go to DIR. It judges
// nothing.
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [browserPath, page, dir, tools] = process.argv.slice(2);
const require = createRequire(path.join(tools, "package.json"));
const { default: puppeteer } = await import(pathToFileURL(require.resolve("puppeteer-core")));

// The sandbox of a browser needs what containers often lack; the page is ours.
const browser = await puppeteer.launch({ executablePath: browserPath, headless: true, args: ["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"] });
try {
  const seen = [];
  for (const width of [1280, 390]) {
    for (const scheme of ["light", "dark"]) seen.push(await look(width, scheme));
  }
  console.log(JSON.stringify({ version: await browser.version(), views: seen, keys: await press() }));
} finally {
  await browser.close();
}

async function open(width, scheme, told) {
  const tab = await browser.newPage();
  tab.on("console", (m) => told.push(`${m.type()}: ${m.text()}`));
  tab.on("pageerror", (e) => told.push(`error: ${e.message}`));
  tab.on("requestfailed", (r) => told.push(`failed: ${r.url()}`));
  tab.on("request", (r) => r.url().startsWith("file:") || r.url().startsWith("data:") || told.push(`asks for: ${r.url()}`));
  await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await tab.setViewport({ width, height: 900 });
  await tab.goto(pathToFileURL(page));
  await tab.waitForSelector("figure svg path.series");
  await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return tab;
}

async function look(width, scheme) {
  const told = [];
  const tab = await open(width, scheme, told);
  const shot = path.join(dir, `${width}-${scheme}.png`);
  await tab.screenshot({ path: shot, fullPage: true });
  const content = await tab.evaluate(() => {
    const box = (e) => {
      const b = e.getBoundingClientRect();
      return [b.left, b.top + scrollY, b.width, b.height].map(Math.round);
    };
    const colour = (e, what) => getComputedStyle(e)[what];
    return {
      title: document.title,
      pageWidth: document.documentElement.scrollWidth,
      paper: colour(document.body, "backgroundColor"),
      ink: colour(document.body, "color"),
      cards: [...document.querySelectorAll(".card")].map((c) => [c.querySelector("dt").textContent, c.querySelector(".value").textContent]),
      figures: [...document.querySelectorAll("figure")].map((f) => ({
        id: f.id,
        box: box(f),
        title: f.querySelector("h2").textContent,
        series: [...f.querySelectorAll("path.series")].map((p) => ({ length: p.getTotalLength(), colour: colour(p, "stroke"), dash: p.getAttribute("stroke-dasharray") })),
        stage: f.querySelector(".stage") ? box(f.querySelector(".stage")) : null,
        canvas: f.querySelector("canvas") ? box(f.querySelector("canvas")) : null,
        rows: f.querySelectorAll("tbody tr").length,
        label: f.querySelector("svg[role=img]")?.getAttribute("aria-label") ?? "",
        overflow: [...f.querySelectorAll("svg text")].filter((t) => {
          const b = t.getBoundingClientRect();
          return b.left < -0.5 || b.right > innerWidth + 0.5;
        }).map((t) => t.textContent),
      })),
    };
  });
  await tab.close();
  return { width, scheme, shot, told, ...content };
}

// press walks through the page by keys alone.
async function press() {
  const told = [];
  const tab = await open(1280, "light", told);
  const stops = [];
  for (let i = 0; i < 200; i++) {
    await tab.keyboard.press("Tab");
    const at = await tab.evaluate(() => {
      const e = document.activeElement;
      return e === document.body ? null : [e.tagName.toLowerCase(), e.closest("figure")?.id ?? "", e.getAttribute("role") ?? ""];
    });
    if (at === null) break;
    stops.push(at);
    if (at[0] === "svg") await walk(tab, at[1], stops);
  }
  const details = await tab.evaluate(async () => {
    const element = document.querySelector("figure.lines details");
    if (!element) return {};
    element.querySelector("summary").click();
    await new Promise((done) => setTimeout(done, 50));
    return { numbers: element.querySelectorAll("tbody tr").length };
  });
  const table = await tab.evaluate(() => {
    const element = document.querySelector("figure.table");
    const button = element.querySelectorAll("thead button")[1];
    button.click();
    const cells = () => [...element.querySelectorAll("tbody tr")].map((r) => r.children[1].textContent);
    const down = cells();
    button.click();
    return { down, up: cells() };
  });
  const lines = await tab.evaluate(() => {
    const legend = document.querySelector("#queue-depth .legend button");
    if (!legend) return {};
    const count = () => document.querySelectorAll("#queue-depth path.series").length;
    const before = count();
    legend.click();
    return { lines: [before, count()] };
  });
  const choices = await choose(tab);
  await tab.close();
  return { told, stops, ...details, ...table, ...lines, choices };
}

// choose goes through the choices of a figure by keys and notes what it draws.
async function choose(tab) {
  const select = await tab.$("figure select");
  if (!select) return [];
  await select.focus();
  const choices = [];
  const count = await select.evaluate((e) => e.options.length);
  for (let i = 0; i < count; i++) {
    choices.push(await select.evaluate((e) => {
      const figure = e.closest("figure");
      const many = (kind) => figure.querySelectorAll(".stage ." + kind).length;
      return { name: e.selectedOptions[0].textContent, line: figure.querySelector("path.series").getAttribute("d"), front: many("front"), outside: many("outside"), points: many("point"), marks: many("mark") };
    }));
    await tab.keyboard.press("ArrowDown");
  }
  return choices;
}

// walk moves the cursor of a figure and notes what it tells.
async function walk(tab, id, stops) {
  const tip = () => tab.evaluate((f) => {
    const t = document.querySelector(`#${f} .tip`);
    return t.hidden ? null : t.textContent;
  }, id);
  const said = [await tip()];
  for (const key of ["Home", "ArrowRight", "End", "Escape"]) {
    await tab.keyboard.press(key);
    said.push(await tip());
  }
  stops.at(-1).push(said);
}
