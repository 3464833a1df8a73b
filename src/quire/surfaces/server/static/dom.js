// Elements from data. Data becomes text nodes and attributes, never markup.
import { listen } from "./live.js";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("aria-")) { element.setAttribute(name, String(value)); continue; }
    if (value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

export const h = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const nameOf = (element) => element.getAttribute("aria-label") ?? (element.id || element.textContent);

// Puts these in the place of what is there. Whoever stands on a button with the keyboard, or opened something, finds it again.
export function put(parent, ...children) {
  const here = document.activeElement !== parent && parent.contains(document.activeElement) ? document.activeElement : null;
  const opened = [...parent.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent);
  const scrolled = [...parent.querySelectorAll(".log, pre")].map((one) => one.scrollTop);
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  for (const summary of opened.length ? parent.querySelectorAll("details > summary") : []) if (opened.includes(summary.textContent)) summary.parentElement.open = true;
  if (scrolled.some(Boolean)) parent.querySelectorAll(".log, pre").forEach((one, number) => { one.scrollTop = scrolled[number] ?? 0; });
  if (here && !here.isConnected) [...parent.querySelectorAll(here.tagName)].find((one) => nameOf(one) === nameOf(here))?.focus({ preventScroll: true });
}

export function pill(status) {
  return h("span", { class: `pill ${String(status).toLowerCase()}` }, status.replace("_", " "));
}

export function pretty(value) {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

export function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
  const length = Math.abs(past);
  let text;
  if (length < 1) text = "now";
  else if (length < 60) text = `${Math.floor(length)} s`;
  else if (length < 3600) text = `${Math.floor(length / 60)} min`;
  else if (length < 172800) text = `${Math.floor(length / 3600)} h`;
  else text = `${Math.floor(length / 86400)} d`;
  if (text === "now") return text;
  return past >= 0 ? text : `in ${text}`;
}

// A length of time in words.
export function lasting(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 120) return `${seconds.toFixed(1)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

// Draws now, and again when something changes, not more often than every so many milliseconds.
export function lively(kinds, refresh, wait = 600, concerns = () => true) {
  let pending = null;
  const again = () => { pending = null; Promise.resolve(refresh()).catch(() => {}); };
  const unlisten = listen((kind, data) => {
    if (kinds.includes(kind) && concerns(kind, data)) pending ??= setTimeout(again, wait);
  });
  again();
  return () => { unlisten(); clearTimeout(pending); };
}

export const moment = (iso) => (iso ? iso.replace("T", " ").replace(/\.\d+Z$/, "Z") : "");

export function recordHref(id) {
  return `#/record/${encodeURIComponent(id)}`;
}

let toasts = 0;
export function toast(text, bad = false) {
  const place = document.getElementById("toasts");
  if (!place) return;
  const box = h("div", { class: bad ? "toast bad" : "toast", role: bad ? "alert" : null, id: `toast${(toasts += 1)}` }, text,
    h("button", { class: "plain", "aria-label": "Close this message", onclick: () => box.remove() }, "×"));
  place.append(box);
  while (place.children.length > 4) place.firstChild.remove();
  setTimeout(() => box.remove(), bad ? 12000 : 5000);
}

// A question in a dialog: resolves to the values of its fields, or null.
export function ask({ title, text, list, fields = [], yes = "OK", danger = false }) {
  return new Promise((resolve) => {
    const inputs = fields.map((field) => {
      const id = `ask-${field.name}`;
      let input;
      if (field.options) {
        input = h("select", { id, name: field.name }, field.options.map((option) => h("option", { value: option }, option)));
        if (field.value) input.value = field.value;
      } else if (field.rows) {
        input = h("textarea", { id, name: field.name, rows: field.rows, spellcheck: "false" });
        input.value = field.value ?? "";
      } else if (field.check) {
        input = h("input", { id, name: field.name, type: "checkbox" });
        input.checked = Boolean(field.value);
        return h("label", { class: "check", for: id }, input, field.label);
      } else {
        input = h("input", { id, name: field.name, type: field.type ?? "text", required: field.required, maxlength: 5000 });
        input.value = field.value ?? "";
      }
      return [h("label", { for: id }, field.label), input];
    });
    const form = h("form", { method: "dialog" },
      h("h2", {}, title), text ? h("p", {}, text) : null, list ? h("pre", { class: "list" }, list) : null, inputs,
      h("div", { class: "row end" },
        h("button", { type: "button", onclick: () => box.close("") }, "Not now"),
        h("button", { type: "submit", class: danger ? "danger" : "primary", value: "yes" }, yes)));
    const box = h("dialog", { "aria-label": title }, form);
    box.addEventListener("close", () => {
      const values = {};
      for (const field of fields) {
        const input = form.elements[field.name];
        values[field.name] = field.check ? input.checked : input.value;
      }
      box.remove();
      resolve(box.returnValue === "yes" ? values : null);
    });
    document.body.append(box);
    box.showModal();
  });
}
