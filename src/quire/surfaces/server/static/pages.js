// The machine, the inbox, the errors, the workers.
import { act, get, post } from "./api.js";
import { h, moment, pill, put, recordHref } from "./dom.js";
import { drawHistory } from "./history.js";
import { listen } from "./live.js";
import { questionCard } from "./question.js";

// Draws again when something changes, not more often than that.
function lively(kinds, refresh, wait = 600) {
  let pending = null;
  const unlisten = listen((kind) => {
    if (kinds.includes(kind)) pending ??= setTimeout(() => { pending = null; refresh(); }, wait);
  });
  refresh();
  return () => { unlisten(); clearTimeout(pending); };
}

export function machinePage(main, wanted) {
  const place = h("div", {});
  const past = h("div", {});
  put(main, h("h1", {}, "Machines"), place, h("section", { class: "card" }, h("h2", {}, "All records over the last hour"), past));
  let picture = 0;
  return lively(["counts", "reset"], async () => {
    const found = await get("/api/workflows");
    if (!found.length) { put(place, h("p", { class: "quiet" }, "No workflow is registered yet: run quire up with a flow file.")); return; }
    const chosen = found.find((one) => one.name === wanted) ?? found[0];
    const statuses = [...new Set(chosen.counts.map((row) => row[1]))];
    const count = (step, status) => chosen.counts.filter((row) => row[0] === step && row[1] === status).reduce((sum, row) => sum + row[2], 0);
    const steps = [...new Set([...chosen.steps.map((step) => step.name), ...chosen.counts.map((row) => row[0])])];
    picture += 1;
    drawHistory(past).catch(() => {});
    const url = `/api/workflows/${encodeURIComponent(chosen.name)}/graph.svg`;
    put(place,
      h("div", { class: "row tabs", role: "tablist", "aria-label": "Workflows" }, found.map((one) => h("a", { role: "tab", class: "tab", "aria-selected": one.name === chosen.name, href: `#/machine/${encodeURIComponent(one.name)}` }, one.name))),
      h("figure", { class: "card drawing" }, h("img", { src: `${url}?n=${picture}`, alt: `The steps of ${chosen.name} and the records at each` })),
      h("section", { class: "card" }, h("h2", {}, `Records of ${chosen.name}`),
        h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Step"), statuses.map((status) => h("th", { scope: "col" }, pill(status))))),
          h("tbody", {}, steps.map((step) => h("tr", {}, h("th", { scope: "row" }, step || "ended"), statuses.map((status) => h("td", {}, count(step, status) ? h("a", { href: `#/?workflow=${encodeURIComponent(chosen.name)}&step=${encodeURIComponent(step)}&status=${status}` }, count(step, status).toLocaleString()) : "")))))))));
  }, 1000);
}

export function approvalsPage(main) {
  const place = h("div", { class: "cards" });
  const none = h("p", { class: "quiet" }, "Nobody is asked anything.");
  put(main, h("h1", {}, "Approvals"), none, place);
  const cards = new Map();
  return lively(["changes", "reset"], async () => {
    const found = await get("/api/approvals");
    const keys = new Set();
    for (const row of found) {
      const key = `${row.record_id} ${row.asked.hash ?? row.asked.name} ${(row.asked.votes ?? []).length}`;
      keys.add(key);
      if (cards.has(key)) continue;
      const card = h("article", { class: "card", "aria-label": `Question of ${row.record_id}` },
        h("p", { class: "crumbs" }, h("a", { href: recordHref(row.record_id) }, row.record_id), ` · ${row.workflow} · ${row.step} · since ${moment(row.asked_since)}`),
        questionCard({ ...row, done: () => { card.remove(); cards.delete(key); none.hidden = cards.size > 0; } }));
      cards.set(key, card);
      place.append(card);
    }
    for (const [key, card] of cards) if (!keys.has(key)) { card.remove(); cards.delete(key); }
    none.hidden = cards.size > 0;
  });
}

export function errorsPage(main) {
  const place = h("div", { class: "cards" });
  put(main, h("h1", {}, "Errors by cause"), place);
  return lively(["changes", "reset", "counts"], async () => {
    const groups = await get("/api/errors");
    put(place, groups.length ? groups.map((group) => h("article", { class: "card", "aria-label": `${group.count} with one cause` },
      h("div", { class: "title" }, h("h2", {}, group.cause), h("b", { class: "big" }, group.count.toLocaleString())),
      h("p", { class: "quiet" }, `${group.workflow} · ${group.step} · ${moment(group.first_at)} to ${moment(group.latest_at)}`),
      h("pre", { class: "problem" }, group.example ?? "no reason was given"),
      h("p", { class: "links" }, group.record_ids.slice(0, 8).map((id) => [h("a", { href: recordHref(id) }, id), " "]), group.count > 8 ? `and ${(group.count - 8).toLocaleString()} more` : ""),
      h("div", { class: "row" }, h("button", { class: "primary", onclick: () => act(() => post("/api/many", { act: "retry", where: { workflow: group.workflow, step: group.step, cause: group.cause, limit: 10000 } }), (value) => `${value.done} retried${value.refused.length ? `, ${value.refused.length} refused` : ""}`) }, group.count === 1 ? "Retry it" : `Retry all ${group.count.toLocaleString()}`)))) : h("p", { class: "quiet" }, "No record is in ERROR."));
  });
}

export function workersPage(main) {
  const place = h("div", {});
  put(main, h("h1", {}, "Workers"), place);
  async function refresh() {
    const [workers, standing] = [await get("/api/workers"), await get("/api/standing")];
    const rows = workers.sort((a, b) => Number(b.alive) - Number(a.alive) || (a.started_at < b.started_at ? 1 : -1)).slice(0, 200);
    put(place, h("section", { class: "card" }, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Worker", "Label", "Host", "Process", "State", "Started"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, h("td", {}, row.worker_id), h("td", {}, row.label), h("td", {}, row.host), h("td", {}, row.pid), h("td", {}, row.alive ? "alive" : row.closed ?? "lost"), h("td", { class: "nowrap" }, moment(row.started_at)))))))),
      h("section", { class: "card" }, h("h2", {}, "Effects under way"), standing.under_way.length ? h("ul", {}, standing.under_way.map((row) => h("li", {}, h("a", { href: recordHref(row.record_id) }, row.record_id), ` ${row.name}, until ${moment(row.act_by)}`))) : h("p", { class: "quiet" }, "None.")));
  }
  const timer = setInterval(refresh, 5000);
  const end = lively(["standing"], refresh);
  return () => { clearInterval(timer); end(); };
}
