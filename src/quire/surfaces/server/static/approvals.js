// All that waits for people, page by page: what expires next first, or another order; mine, or of one workflow.
import { at, get } from "./api.js";
import { h, lively, moment, put, recordHref } from "./dom.js";
import { known } from "./live.js";
import { questionCard } from "./question.js";

const PAGE = 50;
const ORDERS = [["expiry", "What expires next"], ["age", "The longest waiting"], ["workflow", "By workflow"]];

export function approvalsPage(main, query) {
  const state = { by: ORDERS.some(([word]) => word === query.get("by")) ? query.get("by") : "expiry", mine: query.has("mine"), workflow: query.get("workflow") ?? "", from: Math.max(0, Number.parseInt(query.get("from"), 10) || 0) };
  const place = h("div", { class: "cards" });
  const none = h("p", { class: "quiet" });
  const count = h("strong", { role: "status" });
  const order = h("select", { "aria-label": "Order" }, ORDERS.map(([word, label]) => h("option", { value: word }, label)));
  const workflow = h("select", { "aria-label": "Workflow" });
  const mine = h("input", { type: "checkbox", id: "mine" });
  const earlier = h("button", { onclick: () => turn(-PAGE) }, "Previous");
  const later = h("button", { onclick: () => turn(PAGE) }, "Next");
  put(main, h("h1", {}, "Approvals"),
    h("div", { class: "bar" }, order, workflow, h("label", { class: "check", for: "mine" }, mine, "Mine"), count, earlier, later), none, place);
  order.value = state.by;
  mine.checked = state.mine;
  order.addEventListener("change", () => choose({ by: order.value }));
  workflow.addEventListener("change", () => choose({ workflow: workflow.value }));
  mine.addEventListener("change", () => choose({ mine: mine.checked }));
  const cards = new Map();
  let asked = 0;

  // Where the page is, as an address: a reload and a bookmark show the same questions.
  function href() {
    const words = new URLSearchParams();
    if (state.by !== "expiry") words.set("by", state.by);
    if (state.mine) words.set("mine", "1");
    if (state.workflow) words.set("workflow", state.workflow);
    if (state.from) words.set("from", state.from);
    return words.size ? `#/approvals?${words}` : "#/approvals";
  }

  function choose(what) {
    Object.assign(state, { from: 0 }, what);
    history.replaceState(null, "", href());
    refresh();
  }

  function turn(by) {
    choose({ from: Math.max(0, state.from + by) });
    main.scrollTop = 0;
  }

  function card(row, key) {
    const made = h("article", { class: "card", tabindex: "-1", "aria-label": `Question of ${row.record_id}`, oninput: () => { made.dataset.typed = "1"; } },
      h("p", { class: "crumbs" }, h("a", { href: recordHref(row.record_id) }, row.record_id), ` · ${row.workflow} · ${row.step} · since ${moment(row.asked_since)}`),
      questionCard({ ...row, done: () => {
        if (made.contains(document.activeElement)) (made.nextSibling ?? made.previousSibling)?.focus();
        made.remove();
        cards.delete(key);
        refresh();
      } }));
    made.record = row.record_id;
    made.hash = row.asked.hash;
    return made;
  }

  // What was typed is not lost because other questions come first now: the card stays while its question does.
  async function typed(one) {
    if (!one.dataset.typed || !one.hash) return false;
    const found = await get(at(one.record)).catch(() => null);
    return Boolean(found?.record.waits.some((wait) => wait.hash === one.hash));
  }

  async function refresh() {
    const mark = (asked += 1);
    const words = new URLSearchParams({ by: state.by, workflow: state.workflow, mine: state.mine, offset: state.from, limit: PAGE });
    const found = await get(`/api/approvals?${words}`);
    if (mark !== asked) return;
    if (!found.approvals.length && found.total) { choose({ from: Math.floor((found.total - 1) / PAGE) * PAGE }); return; }
    const shown = new Map(found.approvals.map((row) => [`${row.record_id} ${row.asked.hash ?? row.asked.name} ${(row.asked.votes ?? []).length}`, row]));
    for (const [key, one] of cards) if (!shown.has(key) && !(await typed(one))) { one.remove(); cards.delete(key); }
    if (mark !== asked) return;
    let next = place.firstChild;
    for (const [key, row] of shown) {
      if (!cards.has(key)) cards.set(key, card(row, key));
      if (cards.get(key) === next) next = next.nextSibling; else place.insertBefore(cards.get(key), next);
    }
    head(found);
    if (!cards.size) await whyNobody(none, state.mine || state.workflow);
    none.hidden = cards.size > 0;
  }

  function head({ total, workflows, approvals }) {
    const names = Object.keys(workflows);
    if (state.workflow && !names.includes(state.workflow)) names.push(state.workflow);
    put(workflow, h("option", { value: "" }, "All workflows"), names.map((name) => h("option", { value: name }, `${name} (${(workflows[name] ?? 0).toLocaleString()})`)));
    workflow.value = state.workflow;
    const last = state.from + approvals.length;
    count.textContent = total ? `${(state.from + 1).toLocaleString()} to ${last.toLocaleString()} of ${total.toLocaleString()}` : "";
    earlier.disabled = state.from === 0;
    later.disabled = last >= total;
    earlier.hidden = later.hidden = total <= PAGE && state.from === 0;
  }

  // j and k go from question to question, a and r answer the one that is chosen so. After g a letter names a page.
  let before = "";
  function key(event) {
    const after = before;
    before = event.key;
    if (after === "g" || event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    const chosen = document.activeElement?.closest("article.card");
    if (event.key === "j") (chosen ? chosen.nextSibling : place.firstChild)?.focus();
    if (event.key === "k") chosen?.previousSibling?.focus();
    const button = { a: "[data-key=a]", r: "[data-key=r]" }[event.key];
    // Whoever holds the key down answers one question, not all.
    if (button && !event.repeat && chosen) [...chosen.querySelectorAll(button)].find((one) => one.offsetParent)?.click();
  }

  addEventListener("keydown", key);
  const end = lively(["changes", "reset", "standing"], refresh, 1000);
  return () => { removeEventListener("keydown", key); end(); };
}

// A halt cancels what asks, so that nobody is asked although much waits for an answer.
async function whyNobody(place, filtered) {
  const scopes = known.standing.filter((control) => control.halted).map((control) => (control.scope === "*" ? "" : control.scope));
  const held = await Promise.all(scopes.map((scope) => get(`/api/reach?workflow=${encodeURIComponent(scope)}`)));
  const count = held.reduce((total, reach) => total + reach.held_asking, 0);
  put(place, count ? `A halt holds ${held.some((reach) => reach.more) ? "at least " : ""}${count.toLocaleString()} ${count === 1 ? "record that asks" : "records that ask"} a person. They ask again when what it cancelled is resumed.` : filtered ? "Nothing that fits this choice waits for an answer." : "Nobody is asked anything.");
}
