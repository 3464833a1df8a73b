// Counts over the last hour, as far as this server has seen: a line for each status, and for each step of a workflow.
import { get } from "./api.js";
import { h, put, s } from "./dom.js";

const STATUSES = ["PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED", "DONE"];
const TALL = 44;

function minutes(seconds) {
  return seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;
}

function line(label, kind, samples, values) {
  const from = samples[0][0];
  const to = Math.max(from + 1, samples.at(-1)[0]);
  const most = Math.max(1, ...values);
  const points = samples.map(([at], n) => `${(((at - from) / (to - from)) * 200).toFixed(1)},${(TALL - 2 - (values[n] / most) * (TALL - 6)).toFixed(1)}`);
  const summary = `${label}: now ${values.at(-1).toLocaleString()}, at most ${most.toLocaleString()}, over ${minutes(to - from)}`;
  return h("figure", { class: `spark ${kind}` },
    h("figcaption", {}, h("span", {}, label), h("b", {}, values.at(-1).toLocaleString()), h("small", {}, `most ${Math.max(...values).toLocaleString()}`)),
    s("svg", { viewBox: `0 0 200 ${TALL}`, preserveAspectRatio: "none", role: "img", "aria-label": summary },
      s("path", { d: `M0,${TALL}L${points.join("L")}L200,${TALL}Z`, class: "area" }), s("polyline", { points: points.join(" "), class: "line" })));
}

export async function drawHistory(place, workflow) {
  const samples = await get("/api/history");
  if (samples.length < 2) { put(place, h("p", { class: "quiet" }, "There is nothing to draw yet: counts are kept from now on.")); return; }
  const statuses = STATUSES.filter((status) => samples.some(([, counts]) => counts[status]));
  const steps = [...new Set(samples.flatMap(([, , rows]) => (rows ?? []).filter((row) => row[0] === workflow).map((row) => row[1])))];
  const at = (rows, step) => (rows ?? []).find((row) => row[0] === workflow && row[1] === step)?.[2] ?? 0;
  put(place,
    h("h3", {}, "All records, by status"),
    h("div", { class: "sparks" }, statuses.map((status) => line(status.replace("_", " "), status.toLowerCase(), samples, samples.map(([, counts]) => counts[status] ?? 0)))),
    steps.length ? [h("h3", {}, `Under way in ${workflow}, by next step`),
      h("div", { class: "sparks" }, steps.map((step) => line(step, "step", samples, samples.map(([, , rows]) => at(rows, step)))))] : null);
}
