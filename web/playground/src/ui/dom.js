// Elements, numbers as text, downloads. It knows nothing of simulations.

/**
 * A new element. Attributes that are false or undefined are left out, true is
 * an empty one; on* are listeners.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null | undefined | false)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function make(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue;
    if (key.startsWith("on")) e.addEventListener(key.slice(2), value);
    else if (key === "style") e.style.cssText = value; // the page's policy refuses style attributes
    else e.setAttribute(key, value === true ? "" : String(value));
  }
  for (const c of children) if (c) e.append(c);
  return e;
}

/** The element with an id. @param {string} id @returns {HTMLElement} */
export function at(id) {
  const e = document.getElementById(id);
  if (!e) throw new Error(`no element ${id}`);
  return e;
}

/** A number with about three digits and groups of thousands. @param {number | null | undefined} x */
export function spell(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  const digits = size >= 100 || x === 0 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : Math.min(2 - Math.floor(Math.log10(size)), 8);
  return x.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** The unit of time for values up to so many ms, and what it is in ms. @param {number} ms @returns {[string, number]} */
export function unitOf(ms) {
  return ms < 1000 ? ["ms", 1] : ms < 120e3 ? ["s", 1e3] : ms < 7.2e6 ? ["min", 6e4] : ["h", 3.6e6];
}

/** A time given in ms, in a unit that suits it. @param {number | null | undefined} ms */
export function spellTime(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  const [unit, one] = unitOf(Math.abs(ms));
  return ms === 0 ? "0 ms" : `${spell(ms / one)} ${unit}`;
}

/** @param {number | null | undefined} x a share @returns {string} per cent */
export function spellShare(x) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  return `${(100 * x).toLocaleString("en-US", { maximumFractionDigits: 1 })} %`;
}

/** A value with its unit: ms as a time, "share" in per cent. @param {number | null | undefined} x @param {string} unit */
export function spellValue(x, unit) {
  if (unit === "ms") return spellTime(x);
  if (unit === "share") return spellShare(x);
  return unit ? `${spell(x)} ${unit}` : spell(x);
}

/** @param {number} n @param {string} noun */
export const plural = (n, noun) => (n === 1 ? `1 ${noun}` : `${n.toLocaleString("en-US")} ${noun}s`);

/** Lets the browser save bytes as a file. @param {string} name @param {BlobPart} content @param {string} type */
export function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Copies a text. Pages that came by plain http from another machine have no clipboard; where nothing copies, the text is shown. @param {string} text @param {string} what */
export async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = make("textarea", { readonly: true, style: "position:fixed;top:0" }, text);
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    before?.focus();
    if (!copied) return void prompt(`This browser does not let the page copy. The ${what}:`, text);
  }
  say(`The ${what} is copied`);
}

/** Calls f a while after the last of several calls. @template {any[]} A @param {number} ms @param {(...a: A) => void} f @returns {(...a: A) => void} */
export function debounced(ms, f) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  return (...a) => {
    clearTimeout(timer);
    timer = setTimeout(() => f(...a), ms);
  };
}

/** A colour or another custom property of the page's style. @param {string} name */
export const styled = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Tells what happened to those who do not see it, and shows it for a while. @param {string} text */
export function say(text) {
  const e = at("said");
  e.textContent = text;
  e.classList.add("shown");
  hush();
}
const hush = debounced(4000, () => at("said").classList.remove("shown"));
