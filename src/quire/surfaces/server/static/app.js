// The frame of every page: where to go, how the ledger stands, who acts.
import { act, call, get, post } from "./api.js";
import { approvalsPage } from "./approvals.js";
import { ask, h, moment, put } from "./dom.js";
import { gridHref, gridPage } from "./grid.js";
import { connect, known, listen } from "./live.js";
import { machinePage } from "./machine.js";
import { missionsPage } from "./missions.js";
import { errorsPage, workersPage } from "./pages.js";
import { recordPage } from "./record.js";

const main = document.getElementById("main");
const PAGES = [["", "Records"], ["approvals", "Approvals"], ["errors", "Errors"], ["machine", "Machines"], ["missions", "Missions"], ["workers", "Workers"]];
let leave = () => {};
let arrived = false;
let me = { name: null, role: null, way: null };

function route() {
  leave();
  const [path, query = ""] = (location.hash.slice(1) || "/").split("?");
  const [, page = "", ...rest] = path.split("/");
  const name = decodeURIComponent(rest.join("/"));
  const words = new URLSearchParams(query);
  main.className = page || "records";
  const found = {
    "": () => gridPage(main, words), record: () => recordPage(main, name), approvals: () => approvalsPage(main, words),
    errors: () => errorsPage(main), machine: () => machinePage(main, name), missions: () => missionsPage(main, name), workers: () => workersPage(main),
  }[page];
  if (found) leave = found();
  else { leave = () => {}; put(main, h("p", {}, "There is no such page. ", h("a", { href: "#/" }, "To the records"))); }
  document.title = `${page === "record" ? name : PAGES.find(([word]) => word === page)?.[1] ?? "Quire"} · Quire`;
  navigation();
  main.scrollTop = 0;
  // Whoever follows a link with the keyboard goes on in the page, not in the link that is gone.
  if (arrived && !document.activeElement?.closest("header, dialog")) main.focus({ preventScroll: true });
  arrived = true;
}

function sum(status) {
  return known.counts.filter((row) => row[2] === status).reduce((total, row) => total + row[3], 0);
}

function navigation() {
  const here = main.className === "records" ? "" : main.className === "record" ? "" : main.className;
  const nav = document.getElementById("nav");
  const badge = { approvals: sum("NEEDS_APPROVAL"), errors: sum("ERROR") };
  // Made once and then only changed: whoever stands on a link with the keyboard keeps their place.
  if (!nav.children.length) put(nav, PAGES.map(([word, label]) => h("a", { "data-page": word }, h("span", {}, label), h("b", { class: `badge ${word}`, hidden: true }))));
  for (const link of nav.children) {
    const word = link.dataset.page;
    link.setAttribute("href", word || main.className === "records" ? `#/${word}` : gridHref());
    if (word === here && main.className !== "record") link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    if (link.hasAttribute("aria-current") && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = link.offsetLeft - nav.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
    link.lastChild.hidden = !badge[word];
    link.lastChild.textContent = (badge[word] ?? 0).toLocaleString();
  }
}

const records = (count) => `${count.toLocaleString()} ${count === 1 ? "record" : "records"}`;
const reachOf = (scope = "") => get(`/api/reach?workflow=${encodeURIComponent(scope)}`).catch(() => null);

// A halt does not wait for a count: without one the dialog says what it does, and not to how many.
async function halt() {
  const reach = await Promise.race([reachOf(), new Promise((resolve) => setTimeout(resolve, 2000, null))]);
  const stops = reach ? `It stops ${records(reach.open)}: ${reach.running.toLocaleString()} running, ${reach.asking.toLocaleString()} asking a person. ` : "";
  await order("halt", "Halt everything?", `${stops}Nothing starts any more, what waits is cancelled, what runs is asked to stop. It holds until somebody resumes.`, "Halt");
}

async function order(word, title, text, yes) {
  const given = await ask({ title, text, fields: [{ name: "reason", label: "Reason, shown on every page", required: true }], yes, danger: word === "halt" });
  if (given) act(() => post(`/api/${word}`, given), (value) => (word === "halt" ? `halted; ${value.under_way.length} effects are under way` : "paused"));
}

async function resume(control) {
  const scope = control.scope === "*" ? "" : control.scope;
  const reach = await reachOf(scope);
  const held = reach ? `${reach.more ? "at least " : ""}${records(reach.held)}${reach.held_asking ? `, ${reach.held_asking.toLocaleString()} of which asked a person` : ""}` : "";
  const text = control.halted ? `New work starts again.${held ? ` The halt holds ${held}.` : ""}` : `Claiming goes on${reach ? `: ${records(reach.pending)} ${reach.pending === 1 ? "is" : "are"} pending` : ""}.`;
  const given = await ask({ title: "Resume?", text, fields: control.halted ? [{ name: "cancelled", label: "What the halt cancelled goes on where it stood", check: true, value: true }] : [], yes: "Resume" });
  if (given) act(() => post("/api/resume", { workflow: scope, cancelled: Boolean(given.cancelled) }), (value) => (value.returned === undefined ? "resumed" : `resumed; ${records(value.returned)} go on`));
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
    may ? h("button", { class: "danger", onclick: halt }, "Halt") : null,
    h("button", { class: "plain who", onclick: person, "aria-label": `Who acts: ${me.name}, ${me.role}` }, me.name ?? "?"),
    h("button", { class: "plain", onclick: theme, "aria-label": "Dark or light", title: "Dark or light" }, "◐"),
    h("button", { class: "plain keys", onclick: help, "aria-label": "Keys", title: "Keys" }, "?"));
}

function help() {
  ask({ title: "Keys", list: [
    "/           filter the records",
    "g r         records        g a   approvals",
    "g e         errors         g m   machines",
    "g i         missions       g w   workers",
    "",
    "In the grid",
    "↑ ↓  j k    move           space   select",
    "shift ↑ ↓   select more    ctrl a  select all",
    "enter       open           esc     select none",
    "r           retry          a       approve",
    "c           cancel         p       priority",
    "",
    "In the approvals",
    "j k         move           a       approve (the first choice)",
    "                           r       reject",
    "",
    "?           this",
  ].join("\n"), yes: "Good" });
}

let before = "";
addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (before === "g") {
    const page = { r: "", a: "approvals", e: "errors", m: "machine", i: "missions", w: "workers" }[event.key];
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
