// Starting a record by hand.
import { act, get, post } from "./api.js";
import { ask, recordHref } from "./dom.js";

function example(schema) {
  const made = {};
  for (const [name, field] of Object.entries(schema?.properties ?? {})) {
    if (field.default !== undefined && !(schema.required ?? []).includes(name)) continue;
    made[name] = { string: "", integer: 0, number: 0, boolean: false, array: [], object: {} }[field.type] ?? null;
  }
  return made;
}

export async function startRecord(wanted) {
  const found = await get("/api/workflows");
  if (!found.length) {
    await ask({ title: "There is no workflow yet", text: "Run quire up with a flow file; it registers its workflows.", yes: "Good" });
    return;
  }
  let name = wanted || found[0].name;
  if (!wanted && found.length > 1) {
    const given = await ask({ title: "Start a record", fields: [{ name: "workflow", label: "Workflow", options: found.map((one) => one.name) }], yes: "Next" });
    if (!given) return;
    name = given.workflow;
  }
  const definition = found.find((one) => one.name === name) ?? found[0];
  const given = await ask({
    title: `Start a record of ${definition.name}`,
    fields: [
      { name: "data", label: "Data (JSON)", rows: 7, value: JSON.stringify(example(definition.schema), null, 2) },
      { name: "record_id", label: "Id (left empty: a new one)" },
    ],
    yes: "Start",
  });
  if (!given) return;
  const record = await act(async () => {
    let data;
    try { data = JSON.parse(given.data || "{}"); } catch { data = given.data; }
    return post("/api/records", { workflow: definition.name, data, ...(given.record_id ? { record_id: given.record_id } : {}) });
  }, (value) => `started ${value.record_id}`);
  if (record) location.hash = recordHref(record.record_id).slice(1);
}
