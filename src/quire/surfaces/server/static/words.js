// Text as agents write it: paragraphs, headings, lists, strong words, code. Made of elements and text, never of markup.
import { h } from "./dom.js";

function inline(text) {
  return text.split(/(\*\*[^*\n]+\*\*|`[^`\n]+`)/).map((part) => {
    if (/^\*\*[^*]+\*\*$/.test(part)) return h("strong", {}, part.slice(2, -2));
    if (/^`[^`]+`$/.test(part)) return h("code", {}, part.slice(1, -1));
    return part;
  });
}

export function words(text) {
  const blocks = text.replace(/\r/g, "").split(/\n{2,}|\n(?=#{1,4} )|(?<=^#{1,4} .*)\n/m).filter((block) => block.trim());
  return h("div", { class: "said" }, blocks.map((block) => {
    const head = /^(#{1,4}) (.+)$/.exec(block.trim());
    if (head) return h("h3", {}, inline(head[2]));
    const lines = block.split("\n");
    if (lines.every((line) => /^\s*[-*] /.test(line))) return h("ul", {}, lines.map((line) => h("li", {}, inline(line.replace(/^\s*[-*] /, "")))));
    if (lines.every((line) => /^\s*\d+[.)] /.test(line))) return h("ol", {}, lines.map((line) => h("li", {}, inline(line.replace(/^\s*\d+[.)] /, "")))));
    if (lines.every((line) => line.startsWith("> "))) return h("blockquote", {}, inline(lines.map((line) => line.slice(2)).join("\n")));
    return h("p", {}, inline(block));
  }));
}
