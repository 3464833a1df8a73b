// The machines: each workflow drawn, with the records at each step as they move, and the counts of the last hour.
import { get } from "./api.js";
import { h, pill, put } from "./dom.js";
import { graph } from "./graph.js";
import { drawHistory } from "./history.js";
import { known, listen } from "./live.js";

const STATUSES = ["PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED", "DONE"];

export function machinePage(main, wanted) {
  const tabs = h("nav", { class: "row tabs", "aria-label": "Workflows" });
  const place = h("div", { class: "drawing card" });
  const table = h("section", { class: "card" });
  const past = h("div", {});
  put(main, h("h1", {}, "Machines"), tabs, place, table, h("section", { class: "card" }, h("h2", {}, "The last hour"), past));
  let chosen = null;
  let drawn = null;
  let left = false;

  const mine = () => known.counts.filter((row) => row[0] === chosen.name).map((row) => row.slice(1));

  function counted() {
    if (!chosen || !drawn) return;
    const rows = mine();
    drawn.count(rows);
    const steps = [...new Set([...chosen.steps.map((step) => step.name), ...rows.map((row) => row[0])])];
    const statuses = STATUSES.filter((status) => rows.some((row) => row[1] === status));
    const count = (step, status) => rows.filter((row) => row[0] === step && row[1] === status).reduce((sum, row) => sum + row[2], 0);
    const href = (step, status) => `#/?workflow=${encodeURIComponent(chosen.name)}${step ? `&step=${encodeURIComponent(step)}` : ""}&status=${status}`;
    put(table, h("h2", {}, `Records of ${chosen.name}`), rows.length ? h("div", { class: "scroll" }, h("table", { class: "numbers" },
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Next step"), statuses.map((status) => h("th", { scope: "col" }, pill(status))))),
      h("tbody", {}, steps.filter((step) => step || rows.some((row) => row[0] === "")).map((step) => h("tr", {}, h("th", { scope: "row" }, step || "none: ended"),
        statuses.map((status) => h("td", {}, count(step, status) ? h("a", { href: href(step, status) }, count(step, status).toLocaleString()) : h("span", { class: "quiet" }, "–")))))))) : h("p", { class: "quiet" }, "It has no record yet."));
  }

  function draw() {
    if (!chosen) return;
    drawn = graph(chosen, Math.max(280, place.clientWidth - 34));
    put(place, drawn.drawn);
    counted();
  }

  async function begin() {
    const found = await get("/api/workflows");
    if (left) return;
    if (!found.length) { put(place, h("p", { class: "quiet" }, "No workflow is registered yet: run quire up with a flow file.")); return; }
    chosen = found.find((one) => one.name === wanted) ?? found.find((one) => one.counts.length) ?? found[0];
    put(tabs, found.map((one) => h("a", { class: "tab", "aria-current": one.name === chosen.name ? "page" : null, href: `#/machine/${encodeURIComponent(one.name)}` }, one.name)));
    if (!known.counts.length) known.counts = found.flatMap((one) => one.counts.map((row) => [one.name, ...row]));
    draw();
    drawHistory(past, chosen.name).catch(() => {});
  }

  const unlisten = listen((kind) => { if (kind === "counts") counted(); });
  const timer = setInterval(() => { if (chosen) drawHistory(past, chosen.name).catch(() => {}); }, 10000);
  let wideBefore = 0;
  const resized = new ResizeObserver(() => { if (place.clientWidth !== wideBefore) { wideBefore = place.clientWidth; draw(); } });
  resized.observe(place);
  begin().catch(() => {});
  return () => { left = true; unlisten(); clearInterval(timer); resized.disconnect(); };
}
