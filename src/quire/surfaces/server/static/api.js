// Calls of the API. Every call carries the mark that a foreign page cannot set.
import { toast } from "./dom.js";

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.message ?? `status ${status}`);
    this.status = status;
    this.word = problem.error;
  }
}

function headers(extra) {
  const made = { "X-Quire": "1", ...extra };
  const name = localStorage.getItem("quire.as");
  if (name) made["X-Quire-As"] = encodeURIComponent(name);
  return made;
}

export async function call(method, path, body, extra = {}) {
  const request = { method, headers: headers(extra), credentials: "same-origin" };
  if (body !== undefined) {
    request.body = JSON.stringify(body);
    request.headers["Content-Type"] = "application/json";
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Refused(0, { error: "Away", message: "the server does not answer" });
  }
  const value = await answer.json().catch(() => ({}));
  if (answer.status === 401 && location.pathname === "/") {
    location.assign("/login");
    throw new Refused(401, value);
  }
  if (!answer.ok) throw new Refused(answer.status, value);
  return value;
}

export const get = (path) => call("GET", path);
export const post = (path, body = {}) => call("POST", path, body);

// An act of a person: says what happened, or why not. Answers whether it landed.
export async function act(work, said) {
  try {
    const value = await work();
    toast(typeof said === "function" ? said(value) : said);
    return value ?? true;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    toast(error.message, true);
    return null;
  }
}

/** A name as part of an address. Browsers take "." and ".." out of an address, so a mark stands before them. */
export const part = (name) => (name === "." || name === ".." ? "%1E" : "") + encodeURIComponent(name);

export const at = (id, verb = "") => `/api/records/${part(id)}${verb ? `/${verb}` : ""}`;
