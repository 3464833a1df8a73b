// What an accessible page has. Answers with a sentence for each thing that is wrong.
() => {
  const wrong = [];
  const where = (element) => {
    const text = (element.textContent || "").trim().slice(0, 40);
    return `<${element.tagName.toLowerCase()} class="${element.getAttribute("class") ?? ""}"> ${JSON.stringify(text)}`;
  };
  const shown = (element) => {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    return style.visibility !== "hidden" && style.display !== "none" && box.width > 1 && box.height > 1 && !element.closest("[hidden]");
  };

  // Names.
  const byId = (ids) => ids.split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ");
  const named = (element) => (element.getAttribute("aria-label") ?? "") || byId(element.getAttribute("aria-labelledby") ?? "")
    || [...(element.labels ?? [])].map((label) => label.textContent).join("") || element.getAttribute("alt")
    || (["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName) ? "" : element.textContent) || element.getAttribute("title") || "";
  for (const element of document.querySelectorAll("button, a[href], input, select, textarea, [role=img], img, [tabindex='0']")) {
    if (shown(element) && !named(element).trim()) wrong.push(`no name: ${where(element)}`);
  }

  // Landmarks, headings, tables, ids.
  for (const [name, least] of [["header", 1], ["nav", 1], ["main", 1]]) if (document.querySelectorAll(name).length < least) wrong.push(`no <${name}>`);
  if (document.querySelectorAll("main").length !== 1) wrong.push("not exactly one <main>");
  if (document.querySelectorAll("h1").length !== 1) wrong.push(`${document.querySelectorAll("h1").length} <h1>`);
  if (!document.documentElement.lang) wrong.push("no language");
  let level = 1;
  for (const head of document.querySelectorAll("main :is(h1, h2, h3, h4)")) {
    const its = Number(head.tagName[1]);
    if (its > level + 1) wrong.push(`a heading of level ${its} after one of level ${level}: ${where(head)}`);
    level = its;
  }
  for (const table of document.querySelectorAll("table")) if (!table.querySelector("th[scope]")) wrong.push(`a table without headers: ${where(table)}`);
  for (const grid of document.querySelectorAll("[role=grid]")) {
    if (!grid.querySelector("[role=columnheader]")) wrong.push("a grid without headers");
    for (const row of grid.querySelectorAll("[role=row]")) if (![...row.children].every((cell) => ["gridcell", "columnheader"].includes(cell.getAttribute("role")))) wrong.push("a grid row with other children than cells");
  }
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) wrong.push(`the id ${id} twice`);
  for (const element of document.querySelectorAll("[tabindex]")) if (Number(element.getAttribute("tabindex")) > 0) wrong.push(`tabindex above 0: ${where(element)}`);
  for (const id of ["banner", "toasts"]) if (document.getElementById(id)?.getAttribute("aria-live") !== "polite") wrong.push(`#${id} is not told when it changes`);
  for (const element of document.querySelectorAll("[aria-current], [aria-pressed], [aria-selected]")) {
    const role = element.getAttribute("role");
    if (element.hasAttribute("aria-selected") && !["row", "gridcell", "tab", "option"].includes(role)) wrong.push(`aria-selected where it means nothing: ${where(element)}`);
  }

  // Contrast of every text that is shown.
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) {
      const its = colour(getComputedStyle(one).backgroundColor);
      if (its[3] > 0) layers.push(its);
      if (its[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = ([r, g, b]) => [r, g, b].map((value) => { const part = value / 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; }).reduce((sum, part, n) => sum + part * [0.2126, 0.7152, 0.0722][n], 0);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const seen = new Set();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || seen.has(element) || !shown(element) || element.closest("[aria-hidden=true], :disabled, script, style, noscript, title, .hidden")) continue;
    seen.add(element);
    const style = getComputedStyle(element);
    const svg = element instanceof SVGElement;
    const rect = svg ? element.parentElement.closest(".node")?.querySelector("rect") : null;
    const back = rect ? over(colour(getComputedStyle(rect).fill), ground(document.body)) : ground(svg ? element.closest("svg").parentElement : element);
    const ink = over(colour(svg ? style.fill : style.color), back);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = Number.parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) wrong.push(`contrast ${ratio.toFixed(2)}: ${where(element)}`);
  }
  return { wrong, texts: seen.size };
}
