// Missions: which there are; and one of them, its agents' turns side by side as they come.
import { get, part, Refused } from "./api.js";
import { h, lasting, lively, moment, pill, put, recordHref } from "./dom.js";
import { COL } from "./store.js";
import { words } from "./words.js";

const missionHref = (id) => `#/missions/${encodeURIComponent(id)}`;
const WORDS = { waiting: "waits", running: "speaks", asking: "asks a person", failed: "failed", cancelled: "cancelled", "to come": "to come", done: "done", unfinished: "unfinished" };

export function missionsPage(main, id) {
  return id ? missionPage(main, id) : listPage(main);
}

function listPage(main) {
  const place = h("div", {});
  put(main, h("h1", {}, "Missions"), place);
  return lively(["changes", "reset"], async () => {
    const found = await get("/api/missions");
    put(place, found.length ? h("div", { class: "card scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Mission", "Blueprint", "Status", "At", "Changed"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, found.map((row) => h("tr", {}, h("td", {}, h("a", { href: missionHref(row.record_id) }, row.record_id)), h("td", {}, row.workflow), h("td", {}, pill(row.status)), h("td", {}, row.next_step || "–"), h("td", { class: "nowrap" }, moment(new Date(row.updated_at * 1000).toISOString())))))))
      : h("div", { class: "card empty" }, h("p", {}, "There is no mission yet."), h("p", { class: "quiet" }, "quire mission demo shows one; quire mission run starts one from a blueprint.")));
  }, 1000);
}

// One turn of an agent: what it was asked, what it said, what that took.
function turnCell(turn, name) {
  const took = turn.began_at && turn.ended_at ? lasting((Date.parse(turn.ended_at) - Date.parse(turn.began_at)) / 1000) : "";
  const spent = turn.calls ? `${turn.tokens.toLocaleString()} tokens${turn.usd ? ` · $${turn.usd.toFixed(4)}` : ""}${took ? ` · ${took}` : ""}` : "";
  return h("article", { class: `turn ${turn.status.replace(" ", "-")}`, "aria-label": `${name}, ${turn.turn ? `turn ${turn.turn}` : "the result"}` },
    h("header", {}, h("b", {}, turn.turn ? `Turn ${turn.turn}` : "Result"), h("span", { class: "how" }, WORDS[turn.status] ?? turn.status)),
    turn.prompt ? h("details", {}, h("summary", {}, "Asked"), h("p", { class: "prompt" }, turn.prompt)) : null,
    turn.text ? words(turn.text) : null,
    turn.failed.length ? h("details", { class: "problem" }, h("summary", {}, `${turn.failed.length} failed ${turn.failed.length === 1 ? "call" : "calls"}`), turn.failed.map((text) => h("p", {}, text))) : null,
    turn.corrections.length ? h("details", {}, h("summary", {}, `${turn.corrections.length} corrected ${turn.corrections.length === 1 ? "prompt" : "prompts"}`), turn.corrections.flatMap((one) => [h("p", {}, `${one.try}, after ${one.error}${one.judged ? `; judged ${one.judged}` : ""}`), h("p", { class: "prompt" }, `${one.original}\n\n${one.added}`)])) : null,
    spent ? h("footer", {}, spent) : null);
}

function missionPage(main, id) {
  const top = h("div", {});
  const board = h("div", { class: "board", tabindex: "0", role: "region", "aria-label": "Agents side by side" });
  const below = h("div", {});
  const live = h("p", { class: "hidden", role: "status", "aria-live": "polite" });
  put(main, top, board, below, live);
  const drawn = new Map();
  let parts = new Set([id]);
  let heard = null;

  // A turn is drawn anew only when it changed: what is read or opened stays as it is.
  function cell(key, turn, name) {
    const now = JSON.stringify(turn);
    if (drawn.get(key)?.now !== now) drawn.set(key, { now, element: turnCell(turn, name) });
    return drawn.get(key).element;
  }

  async function refresh() {
    let view;
    try { view = await get(`/api/missions/${part(id)}`); } catch (error) {
      if (!(error instanceof Refused)) throw error;
      put(top, h("h1", {}, id), h("p", { class: "problem" }, error.message), h("p", {}, h("a", { href: recordHref(id) }, "To the record")));
      return;
    }
    parts = new Set([id, view.record_id, ...view.agents.map((agent) => agent.record_id)]);
    const done = view.agents.flatMap((agent) => agent.turns).filter((turn) => turn.status === "done").length;
    const all = view.agents.reduce((sum, agent) => sum + agent.turns.length, 0);
    const limits = Object.entries(view.limits).filter(([, value]) => value !== null).map(([name, value]) => `${name} ${value}`).join(", ");
    put(top, h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "#/missions" }, "Missions"), " / ", view.mission),
      h("div", { class: "title" }, h("h1", {}, view.record_id), pill(view.status)),
      h("dl", { class: "facts" }, [
        ["Turns", h("span", {}, h("progress", { max: all + 1, value: done + (view.result ? 1 : 0), "aria-label": "Turns taken" }), ` ${done} of ${all}`)],
        ["Spent", view.spent.in_words], ["Limits", limits || "none"],
        ["Pace", view.pace.most ? `${view.pace.most} at once, ${view.pace.speed_up.toFixed(1)} times as fast as one after the other` : "not begun"],
      ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      view.error && view.status === "ERROR" ? h("p", { class: "problem" }, view.error) : null,
      view.asks.map((ask) => h("p", { class: "banner paused inner" }, h("span", {}, ask.question), h("a", { class: "tab", href: recordHref(ask.record_id) }, "Answer"))),
      h("p", {}, h("a", { href: recordHref(view.record_id) }, "The record: timeline, log, receipts, acts")));
    const columns = view.agents.map((agent) => h("section", { class: "agent", "aria-label": agent.id },
      h("header", {}, h("h2", {}, agent.record_id ? h("a", { href: recordHref(agent.record_id) }, agent.id) : agent.id), h("p", { class: "quiet" }, agent.model), h("p", { class: "quiet" }, `${WORDS[agent.status] ?? agent.status} · ${agent.spent.in_words}`), agent.error ? h("p", { class: "problem" }, agent.error) : null),
      agent.turns.map((turn) => cell(`${agent.id} ${turn.turn}`, turn, agent.id))));
    const top_ = board.scrollLeft;
    put(board, columns);
    board.scrollLeft = top_;
    put(below, h("section", { class: "card result" }, h("h2", {}, `${view.reducer.id} makes one of it`), h("p", { class: "quiet" }, `${view.reducer.model} · ${view.reducer.spent.in_words}`),
      view.result ? words(view.result.text) : h("p", { class: "quiet" }, WORDS[view.reducer.turns[0].status] ?? "to come"),
      view.result && view.result.status !== "done" ? h("p", { class: "problem" }, "Not every agent finished.") : null));
    const news = `${done} of ${all} turns are done${view.result ? "; the result is there" : ""}`;
    if (heard !== null && heard !== news) live.textContent = news;
    heard = news;
  }
  return lively(["changes", "reset"], refresh, 400, (kind, data) => kind === "reset" || data.rows.some((row) => parts.has(row[COL.id])));
}
