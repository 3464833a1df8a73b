// The inbox, the errors, the workers.
import { act, get, post } from "./api.js";
import { known } from "./live.js";
import { h, lively, moment, put, recordHref } from "./dom.js";
import { questionCard } from "./question.js";

export function approvalsPage(main) {
  const place = h("div", { class: "cards" });
  const none = h("p", { class: "quiet" }, "Nobody is asked anything.");
  put(main, h("h1", {}, "Approvals"), none, place);
  const cards = new Map();
  return lively(["changes", "reset", "standing"], async () => {
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
    if (!none.hidden) await whyNobody(none);
  });
}

// A halt cancels what asks, so that nobody is asked although much waits for an answer.
async function whyNobody(place) {
  const scopes = known.standing.filter((control) => control.halted).map((control) => (control.scope === "*" ? "" : control.scope));
  const held = await Promise.all(scopes.map((scope) => get(`/api/reach?workflow=${encodeURIComponent(scope)}`)));
  const count = held.reduce((total, reach) => total + reach.held_asking, 0);
  put(place, count ? `A halt holds ${held.some((reach) => reach.more) ? "at least " : ""}${count.toLocaleString()} ${count === 1 ? "record that asks" : "records that ask"} a person. They ask again when what it cancelled is resumed.` : "Nobody is asked anything.");
}

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
