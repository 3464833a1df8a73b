// The errors, the workers.
import { act, get, post } from "./api.js";
import { h, lively, moment, put, recordHref } from "./dom.js";

export function errorsPage(main) {
  const place = h("div", { class: "cards" });
  const sheets = h("div", { class: "cards" });
  put(main, h("h1", {}, "Errors by cause"), sheets, place);
  return lively(["changes", "reset", "counts"], async () => {
    const [groups, tables] = [await get("/api/errors"), await get("/api/tables")];
    put(sheets, tables.map((each) => h("article", { class: "card" }, h("div", { class: "title" }, h("h2", {}, "The sheet")),
      h("pre", { class: "problem" }, each.text), h("p", { class: "quiet" }, `${each.since ? `since ${moment(each.since)} · ` : ""}${each.remedy}`))));
    put(place, groups.length ? groups.map((group) => h("article", { class: "card", "aria-label": `${group.count} with one cause` },
      h("div", { class: "title" }, h("h2", {}, group.cause), h("b", { class: "big" }, group.count.toLocaleString())),
      h("p", { class: "quiet" }, `${group.workflow} · ${group.step} · ${moment(group.first_at)} to ${moment(group.latest_at)}`),
      h("pre", { class: "problem" }, group.example ?? "no reason was given"),
      h("p", { class: "links" }, group.record_ids.slice(0, 8).map((id) => [h("a", { href: recordHref(id) }, id), " "]), group.count > 8 ? h("a", { href: `#/?status=ERROR&workflow=${encodeURIComponent(group.workflow)}&step=${encodeURIComponent(group.step)}` }, `and ${(group.count - 8).toLocaleString()} more`) : ""),
      h("div", { class: "row actions" }, h("button", { class: "primary", onclick: () => act(() => post("/api/many", { act: "retry", where: { workflow: group.workflow, step: group.step, cause: group.cause, limit: 10000 } }), (value) => `${value.done} retried${value.refused.length ? `, ${value.refused.length} refused` : ""}`) }, group.count === 1 ? "Retry it" : `Retry all ${group.count.toLocaleString()}`)))) : h("p", { class: "quiet" }, "No record is in ERROR."));
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
