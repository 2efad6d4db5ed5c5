// What can be taken away: reports, requests, the command line.

import { requestsCSV, requestsJSONL } from "../core/report.js";
import { commandLine } from "../core/scenario.js";
import { copy, make, save } from "./dom.js";

/** @typedef {import("../runner.js").Outcome} Outcome */

/** Results of an outcome by name. @param {Outcome | null} o @returns {[string, import("../runner.js").Ran][]} */
function resultsOf(o) {
  if (!o) return [];
  if (o.view === "run") return [["", o.a]];
  if (o.view === "compare") return [["A", o.a], ["B", o.b]];
  return [];
}

/** @param {() => Outcome | null} now */
export function exportMenu(now) {
  const list = make("ul", {});
  const element = make("details", { class: "menu", id: "export" }, make("summary", {}, "Export"), list);
  /** @param {string} id @param {string} label @param {string} about @param {() => void} act */
  const item = (id, label, about, act) => make("li", {}, make("button", { type: "button", id, onclick: act }, label, make("small", {}, about)));
  const sync = () => {
    const o = now();
    const found = resultsOf(o);
    element.hidden = found.length === 0 && o?.view !== "sweep";
    list.replaceChildren(...found.flatMap(([name, { result, scenario }]) => {
      const of = name ? ` of ${name}` : "";
      const end = name ? `-${name.toLowerCase()}` : "";
      return [
        item(`export-report${end}`, `Report${of}, JSON`, "as replay --report-json writes it", () => save(`report${end}.json`, /** @type {BlobPart} */ (result.reportJSON), "application/json")),
        item(`export-csv${end}`, `Requests${of}, CSV`, "a row for each request", () => save(`requests${end}.csv`, requestsCSV(result), "text/csv")),
        item(`export-jsonl${end}`, `Requests${of}, JSON lines`, "as replay --report-jsonl writes them", () => save(`requests${end}.jsonl`, requestsJSONL(result), "application/jsonl")),
        item(`copy-command${end}`, `Copy ${name ? `${name} ` : ""}as command line`, "to repeat the run in a shell", () => copy(commandLine(scenario).text, "command line")),
      ];
    }), ...(o?.view === "sweep" ? [item("export-sweep", "Points, CSV", "a row for each point with its report", () => save("sweep.csv", sweepCSV(o.points), "text/csv"))] : []));
  };
  sync();
  return { element, sync };
}

/** @param {{x: number, ran: import("../runner.js").Ran | null, fault: string}[]} points */
function sweepCSV(points) {
  const first = points.find((p) => p.ran)?.ran;
  if (!first) return "";
  const keys = Object.keys(first.result.report).filter((k) => typeof first.result.report[k] === "number");
  const rows = points.map((p) => [p.x, ...keys.map((k) => (p.ran ? String(p.ran.result.report[k] ?? "") : ""))].join(","));
  return [["value", ...keys].join(","), ...rows, ""].join("\n");
}
