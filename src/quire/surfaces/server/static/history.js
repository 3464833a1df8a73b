// Counts per status over the last hour, one line each, as far as this server has seen.
import { get } from "./api.js";
import { h, put, s } from "./dom.js";

const STATUSES = ["PENDING", "RUNNING", "WAITING", "NEEDS_APPROVAL", "ERROR", "CANCELLED", "DONE"];

export async function drawHistory(place) {
  const samples = await get("/api/history");
  if (samples.length < 2) { put(place, h("p", { class: "quiet" }, "There is nothing to draw yet: counts are kept while somebody looks.")); return; }
  const from = samples[0][0];
  const to = Math.max(from + 1, samples.at(-1)[0]);
  const wide = Math.max(200, place.clientWidth);
  put(place, h("div", { class: "sparks" }, STATUSES.filter((status) => samples.some(([, counts]) => counts[status])).map((status) => {
    const values = samples.map(([, counts]) => counts[status] ?? 0);
    const most = Math.max(1, ...values);
    const w = Math.min(wide, 360);
    const points = samples.map(([at], n) => `${(((at - from) / (to - from)) * (w - 4) + 2).toFixed(1)},${(46 - (values[n] / most) * 42).toFixed(1)}`).join(" ");
    return h("figure", { class: `spark ${status.toLowerCase()}` },
      h("figcaption", {}, `${status.replace("_", " ")} · now ${values.at(-1).toLocaleString()}, at most ${most.toLocaleString()}`),
      s("svg", { width: w, height: 50, viewBox: `0 0 ${w} 50`, role: "img", "aria-label": `${status} over ${Math.round((to - from) / 60)} minutes: at most ${most}, now ${values.at(-1)}` },
        s("polyline", { points, class: "line" })));
  })));
}
