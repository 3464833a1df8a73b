// An approval link: what is asked, and the answer of the person whom it is for. The link stays in this page.
import { post } from "./api.js";
import { h, put } from "./dom.js";
import { questionCard } from "./question.js";

const main = document.getElementById("main");
const link = decodeURIComponent(location.hash.slice(1));
const toasts = h("div", { id: "toasts", role: "status" });
document.body.append(toasts);

try {
  const shown = await post("/api/link", { link });
  const card = h("div", { class: "card" },
    h("h1", {}, shown.record_id), h("p", { class: "quiet" }, `${shown.workflow} · you answer as ${shown.person}`),
    questionCard({
      record_id: shown.record_id, asked: shown.asked, data: shown.data,
      send: (choice, note, edits) => post("/api/link/answer", { link, choice, note, edits }),
      done: () => put(main, h("div", { class: "card" }, h("h1", {}, "Thank you"), h("p", {}, "Your answer is in the ledger. This link does not work any more."))),
    }));
  put(main, card);
} catch (error) {
  put(main, h("div", { class: "card" }, h("h1", {}, "This link does not work"), h("p", { class: "problem" }, error.message)));
}
