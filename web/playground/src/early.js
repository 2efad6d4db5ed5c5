// Begins to fetch core.wasm, the largest file, while the page's script is still
// on its way. WebKit does not give a preload of the page to fetch: it would
// have the file come twice. This is no module, so that it comes before those.

/** @type {{earlyCore?: Promise<Response | null>}} */ (globalThis).earlyCore = fetch(new URL("core.wasm", document.baseURI)).catch(() => null);
