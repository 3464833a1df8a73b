// One record: what it is, why it does not move, and what can be done.
import { act, at, call, get, part, post, Refused } from "./api.js";
import { difference, differences } from "./diff.js";
import { ago, ask, h, lasting, moment, pill, pretty, put, recordHref } from "./dom.js";
import { gantt, ganttTable } from "./gantt.js";
import { listen } from "./live.js";
import { questionCard } from "./question.js";
import { COL } from "./store.js";

const ENDED = ["DONE", "ERROR", "CANCELLED"];
const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

export function recordPage(main, id) {
  let shown = null;
  let pending = null;
  const answer = h("section", { class: "card ask", hidden: true });
  let asks = "";
  // What the data were when this page saw them change: also what a step wrote, of which the log tells nothing.
  const versions = new Map();
  let compared = "entry";
  const rest = h("div", {});
  const top = h("div", {});
  put(main, top, answer, rest);

  async function refresh() {
    pending = null;
    try {
      shown = await get(at(id));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      put(main, h("h1", {}, id), h("p", { class: "problem" }, error.message), h("p", {}, h("a", { href: "#/" }, "To the records")));
      return;
    }
    if (!same([...versions.values()].at(-1), shown.record.data)) versions.set(String(shown.record.version), shown.record.data);
    while (versions.size > 50) versions.delete(versions.keys().next().value);
    draw();
  }

  function changes(record) {
    const place = h("div", { "aria-live": "polite" });
    const older = new Map(shown.versions.slice(1).map((one) => [String(one.version), one]));
    for (const [version, data] of versions) if (!older.has(version) && !same(data, record.data)) older.set(version, { version, kind: "seen by this page" });
    if (!older.has(compared)) compared = "entry";
    const show = () => {
      const since = `Changed since version ${compared}`;
      if (compared === "entry") put(place, difference(shown.entry, record.data, "Changed in this step"));
      else put(place, (versions.has(compared) ? difference(versions.get(compared), record.data, since) : differences(older.get(compared), since)) ?? h("p", { class: "quiet" }, "Nothing differs."));
    };
    show();
    const end = shown.versions_end ? h("p", { class: "quiet" }, shown.versions_end) : null;
    if (!older.size) return [place, end];
    const choice = h("select", { id: "compared", onchange: () => { compared = choice.value; show(); } }, h("option", { value: "entry" }, "how this step found it"),
      [...older].sort(([one], [other]) => other - one).map(([version, { kind, by, at: since }]) =>
        h("option", { value: version }, [`version ${version}`, by ? `${kind} by ${by}` : kind, moment(since)].filter(Boolean).join(" · "))));
    choice.value = compared;
    return [h("p", { class: "compare" }, h("label", { for: "compared" }, `Version ${record.version}, compared with`), choice), place, end];
  }

  // A line of the log; one that tells what it changed in the data opens, and so does a failed try with its trace.
  function words(event) {
    const made = event.trace ? h("pre", { class: "trace" }, event.trace) : differences(event.body);
    return made ? h("details", {}, h("summary", {}, event.words), made) : h("span", {}, event.words);
  }

  // The trace of the try that the record's last error is of.
  function lastTrace() {
    const failed = shown.events.findLast((event) => event.kind === "failed" || event.kind === "broke");
    return failed?.trace ? h("pre", { class: "trace", "aria-label": "Trace of the last failed try" }, failed.trace) : null;
  }

  const acting = (verb, body, said) => act(() => post(at(id, verb), body), said).then(() => refresh());

  function actions(record) {
    const ended = ENDED.includes(record.status);
    const buttons = [];
    const add = (label, work, kind = "") => buttons.push(h("button", { class: kind, onclick: work }, label));
    if (["ERROR", "CANCELLED"].includes(record.status) || (record.status === "PENDING" && record.attempt)) add("Retry", () => acting("retry", {}, "retried"), "primary");
    if (record.status !== "RUNNING") add("Rewind…", async () => {
      const steps = (await get(`/api/workflows/${part(record.workflow)}`)).steps.map((step) => step.name);
      const given = await ask({ title: "Begin anew from a step", text: "The record enters the step again; what it does there is done again.", fields: [{ name: "step", label: "Step", options: steps }], yes: "Rewind" });
      if (given) acting("retry", given, `rewound to ${given.step}`);
    });
    if (shown.moves.length && !ended && record.status !== "RUNNING") add("Move…", async () => {
      const given = await ask({ title: "Move by hand", fields: [{ name: "step", label: "To", options: shown.moves }], yes: "Move" });
      if (given) acting("move", given, `moved to ${given.step}`);
    });
    if (record.status !== "RUNNING" && record.status !== "DONE") add("Edit data…", async () => {
      const version = record.version;
      const given = await ask({ title: "Edit the data", text: `Version ${version}. If the record changes meanwhile, the edit is refused.`, fields: [{ name: "data", label: "Data (JSON)", rows: 14, value: pretty(record.data) }], yes: "Save" });
      if (!given) return;
      await act(() => {
        let data;
        try { data = JSON.parse(given.data); } catch { throw new Refused(400, { message: "this is not JSON" }); }
        return call("PUT", at(id, "data"), { data }, { "If-Match": `"${version}"` });
      }, "saved");
      refresh();
    });
    if (ended && shown.receipts.some((receipt) => receipt.undoable && receipt.stage === "done")) add("Undo…", async () => {
      const given = await ask({ title: "Undo what it did?", text: "Its effects are taken back, the last one first, as their undo says.", fields: [{ name: "reason", label: "Reason" }], yes: "Undo", danger: true });
      if (given) acting("cancel", { ...given, undo: true }, "being undone");
    });
    if (!ended) {
      add("Signal…", async () => {
        const waits = record.waits.filter((wait) => wait.on === "signal").map((wait) => wait.name);
        const given = await ask({ title: "Send a signal", fields: [{ name: "name", label: "Name", value: waits[0] ?? "", required: true }, { name: "value", label: "Value (JSON, may be left empty)", rows: 3 }], yes: "Send" });
        if (!given?.name) return;
        await act(() => {
          let value = null;
          try { value = given.value.trim() ? JSON.parse(given.value) : null; } catch { value = given.value; }
          return post(at(id, `signals/${part(given.name)}`), { value });
        }, `sent ${given.name}`);
        refresh();
      });
      add("Priority…", async () => {
        const given = await ask({ title: "Priority", text: "A point counts as a minute of waiting.", fields: [{ name: "priority", label: "Priority", type: "number", value: record.priority }], yes: "Set" });
        if (given) acting("priority", { priority: Number.parseInt(given.priority, 10) || 0 }, "priority set");
      });
      add("Cancel…", async () => {
        const given = await ask({ title: "Cancel this record?", fields: [{ name: "reason", label: "Reason" }, { name: "undo", label: "Undo what it did", check: true }], yes: "Cancel it", danger: true });
        if (given) acting("cancel", given, "cancelled");
      }, "danger");
    }
    return buttons;
  }

  const section = (title, ...content) => h("section", { class: "card" }, h("h2", {}, title), ...content);

  function draw() {
    const { record } = shown;
    put(top,
      h("nav", { class: "crumbs", "aria-label": "Where this is" }, h("a", { href: "#/" }, "Records"), " / ",
        h("a", { href: `#/?workflow=${encodeURIComponent(record.workflow)}` }, record.workflow)),
      h("div", { class: "title" }, h("h1", {}, record.record_id), pill(record.status)),
      h("p", { class: "why" }, shown.why.sentence),
      h("div", { class: "row actions", role: "toolbar", "aria-label": "Actions" }, actions(record)));
    const waits = record.waits.filter((wait) => wait.on === "question" || wait.on === "doubt");
    const now = waits.map((wait) => wait.hash ?? wait.name).join();
    if (now !== asks) {
      // Drawn anew only when something else is asked: nobody loses what they type.
      asks = now;
      answer.hidden = !waits.length;
      put(answer, waits.map((asked) => questionCard({ record_id: id, asked, data: record.data, entry: shown.entry, done: refresh })));
    }
    const wide = Math.max(260, rest.clientWidth - 34);
    const report = shown.report;
    put(rest,
      section("Timeline", shown.timeline.length ? gantt(shown.timeline, shown.now, wide) : h("p", { class: "quiet" }, "Nothing has run yet."),
        h("p", { class: "quiet legend" }, h("i", { class: "key runs" }), "runs ", h("i", { class: "key waits" }), "waits ", h("i", { class: "key asks" }), "asks ", h("i", { class: "key backs-off" }), "backs off ", h("i", { class: "key bad" }), "failed"),
        report.running_seconds ? h("p", { class: "quiet legend" }, `Workers held it for ${lasting(report.running_seconds)}${report.wall_seconds ? ` of ${lasting(report.wall_seconds)}` : ""}.`) : null,
        shown.timeline.length ? ganttTable(shown.timeline, shown.now) : null),
      h("div", { class: "two" },
        section("Data", changes(record), h("pre", {}, pretty(record.data)),
          record.result !== null ? [h("h3", {}, "Result"), h("pre", {}, pretty(record.result))] : null,
          record.last_error ? [h("h3", {}, "Last error"), h("pre", { class: "problem" }, record.last_error), lastTrace()] : null),
        section("Facts", h("dl", {}, [
          ["Workflow", `${record.workflow}, version ${record.workflow_version}`], ["Next step", record.next_step || "none"], ["Tries", record.attempt],
          ["Priority", record.priority], ["Version", record.version], ["Due", moment(record.due_at) || "not by itself"],
          ["Worker", record.worker ?? "none"], ["Last run", record.last_run_id ?? "none"], ["Started", moment(record.created_at)], ["Changed", moment(record.updated_at)],
        ].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
          record.parent_id ? [h("dt", {}, "Parent"), h("dd", {}, h("a", { href: recordHref(record.parent_id) }, record.parent_id))] : null))),
      shown.children.length ? section(`Children (${shown.children.length})`, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Record", "Status", "Next step", "Changed"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, shown.children.slice(0, 200).map((row) => h("tr", {}, h("td", {}, h("a", { href: recordHref(row[COL.id]) }, row[COL.id])), h("td", {}, pill(row[COL.status])), h("td", {}, row[COL.step]), h("td", {}, ago(row[COL.updated])))))))) : null,
      shown.receipts.length ? section(`Receipts (${shown.receipts.length})`, h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Name", "Kind", "Stage", "Step", "Value", "At"].map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, shown.receipts.map((row) => h("tr", {}, h("td", {}, row.name), h("td", {}, row.kind), h("td", {}, row.stage), h("td", {}, row.step), h("td", {}, h("code", { class: "value" }, pretty(row.value) ?? "")), h("td", { class: "nowrap" }, moment(row.at)))))))) : null,
      shown.signals.length ? section("Signals", h("ul", {}, shown.signals.map((row) => h("li", {}, `${row.name}: ${pretty(row.value)} · ${moment(row.at)} · ${row.taken ? "taken" : "kept"}`)))) : null,
      section("Log", shown.events_left_out ? h("p", { class: "quiet" }, `${shown.events_left_out} older lines are under /events.`) : null,
        h("ol", { class: "log" }, shown.events.toReversed().map((event) => h("li", {}, h("time", { datetime: event.at }, moment(event.at)), words(event))))));
  }

  const unlisten = listen((kind, data) => {
    const mine = kind === "reset" || kind === "standing" || (kind === "changes" && data.rows.some((row) => row[COL.id] === id));
    if (mine && pending === null) pending = setTimeout(refresh, 250);
  });
  let wideBefore = main.clientWidth;
  const watchWidth = () => { if (main.clientWidth !== wideBefore) { wideBefore = main.clientWidth; if (shown) draw(); } };
  addEventListener("resize", watchWidth);
  put(top, h("p", { class: "quiet" }, "Loading…"));
  refresh();
  return () => { unlisten(); clearTimeout(pending); removeEventListener("resize", watchWidth); };
}
