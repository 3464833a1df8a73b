// The frame of every page: where to go, how the ledger stands, who acts.
import { act, call, get, post } from "./api.js";
import { ask, h, moment, put } from "./dom.js";
import { gridPage } from "./grid.js";
import { connect, known, listen } from "./live.js";
import { approvalsPage, errorsPage, machinePage, workersPage } from "./pages.js";
import { recordPage } from "./record.js";

const main = document.getElementById("main");
const PAGES = [["", "Records"], ["approvals", "Approvals"], ["errors", "Errors"], ["machine", "Machines"], ["workers", "Workers"]];
let leave = () => {};
let me = { name: null, role: null, way: null };

function route() {
  leave();
  const [path, query = ""] = (location.hash.slice(1) || "/").split("?");
  const [, page = "", ...rest] = path.split("/");
  const name = decodeURIComponent(rest.join("/"));
  const words = new URLSearchParams(query);
  main.className = page || "records";
  const found = {
    "": () => gridPage(main, words), record: () => recordPage(main, name), approvals: () => approvalsPage(main),
    errors: () => errorsPage(main), machine: () => machinePage(main, name), workers: () => workersPage(main),
  }[page];
  if (found) leave = found();
  else { leave = () => {}; put(main, h("p", {}, "There is no such page. ", h("a", { href: "#/" }, "To the records"))); }
  document.title = `${page === "record" ? name : PAGES.find(([word]) => word === page)?.[1] ?? "Quire"} · Quire`;
  navigation();
}

function sum(status) {
  return known.counts.filter((row) => row[2] === status).reduce((total, row) => total + row[3], 0);
}

function navigation() {
  const here = main.className === "records" ? "" : main.className;
  const badge = { approvals: sum("NEEDS_APPROVAL"), errors: sum("ERROR") };
  put(document.getElementById("nav"), PAGES.map(([word, label]) =>
    h("a", { href: `#/${word}`, "aria-current": word === here ? "page" : null }, label,
      badge[word] ? h("b", { class: `badge ${word}`, "aria-label": `${badge[word]} of them` }, badge[word].toLocaleString()) : null)));
}

async function order(word, title, text, yes) {
  const given = await ask({ title, text, fields: [{ name: "reason", label: "Reason, shown on every page", required: true }], yes, danger: word === "halt" });
  if (given) act(() => post(`/api/${word}`, given), (value) => (word === "halt" ? `halted; ${value.under_way.length} effects are under way` : "paused"));
}

async function resume(control) {
  const scope = control.scope === "*" ? "" : control.scope;
  const given = await ask({ title: "Resume?", text: control.halted ? "New work starts again." : "Claiming goes on.", fields: control.halted ? [{ name: "cancelled", label: "What the halt cancelled goes on where it stood", check: true, value: true }] : [], yes: "Resume" });
  if (given) act(() => post("/api/resume", { workflow: scope, cancelled: Boolean(given.cancelled) }), "resumed");
}

function banner() {
  put(document.getElementById("banner"),
    known.state === "away" && started ? h("div", { class: "banner away" }, "The server is away; what is shown may be old.") : null,
    known.standing.map((control) => h("div", { class: control.halted ? "banner halted" : "banner paused" },
      h("span", {}, h("strong", {}, control.halted ? "HALTED" : "PAUSED"), control.scope === "*" ? "" : ` (${control.scope})`,
        control.reason ? `: ${control.reason}` : "", h("small", {}, ` by ${control.by || "somebody"}, ${moment(control.at)}`)),
      me.role === "viewer" ? null : h("button", { onclick: () => resume(control) }, "Resume"))));
}

function theme() {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("quire.theme", document.documentElement.dataset.theme);
}

async function person() {
  if (me.way === "session") {
    const given = await ask({ title: `Signed in as ${me.name}`, text: `Role: ${me.role}.`, yes: "Sign out" });
    if (given) { await call("DELETE", "/api/session"); location.assign("/login"); }
    return;
  }
  const given = await ask({ title: "Who acts here?", text: "On this machine nobody signs in; the name goes into the log.", fields: [{ name: "name", label: "Name", value: localStorage.getItem("quire.as") ?? me.name ?? "" }], yes: "Keep" });
  if (given) { localStorage.setItem("quire.as", given.name.trim()); me = await get("/api/session"); tools(); }
}

function tools() {
  const may = me.role !== "viewer";
  put(document.getElementById("tools"),
    may ? h("button", { onclick: () => order("pause", "Pause?", "Nothing more is claimed; what runs goes on.", "Pause") }, "Pause") : null,
    may ? h("button", { class: "danger", onclick: () => order("halt", "Halt everything?", "Nothing starts any more, what waits is cancelled, what runs is asked to stop. It holds until somebody resumes.", "Halt") }, "Halt") : null,
    h("button", { class: "plain who", onclick: person, "aria-label": `Who acts: ${me.name}, ${me.role}` }, me.name ?? "?"),
    h("button", { class: "plain", onclick: theme, "aria-label": "Dark or light", title: "Dark or light" }, "◐"),
    h("button", { class: "plain keys", onclick: help, "aria-label": "Keys", title: "Keys" }, "?"));
}

function help() {
  ask({ title: "Keys", text: "/ filter · g then r, a, e, m, w: records, approvals, errors, machines, workers · in the grid: arrows or j, k move, space selects, enter opens · ? this", yes: "Good" });
}

let before = "";
addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (before === "g") {
    const page = { r: "", a: "approvals", e: "errors", m: "machine", w: "workers" }[event.key];
    if (page !== undefined) location.hash = `#/${page}`;
    before = "";
    return;
  }
  before = event.key === "g" ? "g" : "";
  if (event.key === "/") { event.preventDefault(); const filter = document.getElementById("filter"); if (filter) filter.focus(); else location.hash = "#/"; }
  if (event.key === "?") help();
});

let started = false;
listen((kind) => {
  if (kind === "counts") navigation();
  if (kind === "standing" || kind === "state") banner();
});
addEventListener("hashchange", route);
me = await get("/api/session");
if (me.name === null) location.assign("/login");
else {
  document.body.dataset.role = me.role;
  tools();
  connect();
  route();
  setTimeout(() => { started = true; banner(); }, 4000);
}
